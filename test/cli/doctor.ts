import { chmodSync, chownSync, copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

interface Found {
  readonly level: string
  readonly subject: string
  readonly text: string
  readonly remedy: string | null
}

async function doctor(folder: string, settings: object) {
  writeFileSync(`${folder}/gateway.yaml`, JSON.stringify(settings))
  const shell = fakeShell(['doctor', '--json', '--config', `${folder}/gateway.yaml`])
  const code = await runCommand(shell)
  const { ok, findings } = JSON.parse(shell.printed.join('')) as { ok: boolean; findings: readonly Found[] }
  t.equal(code, ok ? 0 : 1)
  const of = (subject: string) => findings.filter(finding => finding.subject === subject)
  return { code, of, text: shell.printed.join('') }
}

const emptyFolder = (t: Test) => {
  const folder = testdir(t, {})
  chmodSync(folder, 0o750)
  return folder
}

t.test('a default configuration in an empty folder is in order, and nothing is made there', async t => {
  const folder = emptyFolder(t)
  const { code, of } = await doctor(folder, {})
  t.equal(code, 0)
  t.match(of('files'), [{ level: /ok|warn/, text: /may open \d+ files/ }])
  t.match(of('data'), [{ level: 'ok', text: /is not there yet/ }])
  t.strictSame([of('database'), of('certificates'), of('receivers'), of('identity provider')], [[], [], [], []])
  t.strictSame(readdirSync(folder), ['gateway.yaml'])
})

t.test('files of another user in the data folder, and a folder for all, have a remedy', async t => {
  const folder = emptyFolder(t)
  const data = testdir(t, { 'gateway.db': '' })
  chmodSync(data, 0o755)
  const isRoot = process.geteuid?.() === 0
  if (isRoot) chownSync(`${data}/gateway.db`, 65_534, 65_534)
  const { of } = await doctor(folder, { Storage: { DataDirectory: data } })
  t.match(of('data'), [
    { text: /\d+ MB free/ },
    ...(isRoot ? [{ level: 'fail', text: /^gateway\.db in .* another user/, remedy: /chown -R 0 / }] : []),
    { level: 'warn', remedy: `Run: chmod o= ${data}` },
  ])
})

t.test('a certificate that expires soon is a warning, with what to do', async t => {
  const folder = emptyFolder(t)
  const tls = new URL('../fixtures/tls/', import.meta.url)
  for (const name of readdirSync(tls)) copyFileSync(new URL(name, tls), `${folder}/${name}`)
  chmodSync(`${folder}/key.pem`, 0o600)
  const Tls = { CertificateFile: 'cert.pem', KeyFile: 'key.pem' }
  const { of } = await doctor(folder, { System: { Server: { Tls } }, ForwardProxy: { Enabled: true } })
  t.match(of('certificates'), [{ text: /the certificate for clients (is valid for \d+ days|has expired)/ }])
  t.notOk(existsSync(`${folder}/data`), 'no authority was made')
})

t.test('webhooks and mail servers are called without a message, and none of their keys is shown', async t => {
  const hook = await startOrigin(t)
  const Webhooks = [{ Url: `${hook.url}/a-key` }, { Url: 'http://127.0.0.1:1/a-key' }]
  const Email = { Host: '127.0.0.1', Port: 1, From: 'a@example.com', To: ['b@example.com'] }
  const Channels = [{ Id: 'C0REVIEW' }]
  const Slack = { BotToken: 'xoxb-1', Team: 'T0TEAM', Channels, Verdicts: 'none', ApiUrl: `${hook.url}/api` }
  const { code, of, text } = await doctor(emptyFolder(t), {
    System: { PublicUrl: 'https://gateway.example' },
    HumanInTheLoop: { Webhooks, Email, Slack },
  })
  t.equal(code, 1)
  t.match(of('receivers'), [
    { level: 'ok', text: 'webhook 0: 127.0.0.1 can be reached' },
    { level: 'fail', text: /^webhook 1 cannot be reached: 127\.0\.0\.1: .*refused/, remedy: /Egress/ },
    { level: 'fail', text: /^e-mail cannot be reached/ },
    { level: 'ok', text: 'Slack: 127.0.0.1 can be reached' },
  ])
  t.notMatch(text, /a-key|xoxb/)
  t.equal(hook.seen.length, 0)
})

t.test('the identity provider is asked for its keys, and about a token that nobody has', async t => {
  const { authority } = await startIdentityProvider(t)
  const Introspection = { ClientId: 'gateway', ClientSecret: 'k', Endpoint: `${authority}/nothing` }
  const Jwt = { Authority: authority, Audience: 'gateway', RequireHttpsMetadata: false }
  const settings = { Security: { AgentAuth: { ExternalIdentity: { Provider: 'Jwt', Jwt, Introspection } } } }
  const { of } = await doctor(emptyFolder(t), settings)
  t.match(of('identity provider'), [
    { level: 'ok', text: new RegExp(`gives its keys; the issuer is ${authority}`) },
    { level: 'fail', text: /does not say what opaque tokens are: 127\.0\.0\.1: status 404/, remedy: /Introspection/ },
  ])
})

t.test('the collector of traces gets a list without a span', async t => {
  const collector = await startOrigin(t)
  const Tracing = { Url: `${collector.url}/v1/traces`, Headers: ['x-key=secret'] }
  const { of, text } = await doctor(emptyFolder(t), { Telemetry: { Tracing } })
  t.match(of('collector'), [{ level: 'ok', text: /takes spans/ }])
  t.match(collector.seen[0], { target: '/v1/traces', headers: { 'x-key': 'secret' } })
  t.notMatch(text, 'secret')
})

t.test('a service that is silent ends the look with a failure, and the others are still reported', async t => {
  const silent = createServer().listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await new Promise(resolve => silent.once('listening', resolve))
  const address = silent.address()
  const port = typeof address === 'object' ? address?.port : 0
  const Webhooks = [{ Url: `https://127.0.0.1:${port}/` }]
  const { code, of } = await doctor(emptyFolder(t), { HumanInTheLoop: { Webhooks } })
  t.equal(code, 1)
  t.match(of('receivers'), [{ level: 'fail', text: 'no answer within 5 seconds' }])
  t.equal(of('files').length, 1)
})

t.test(
  'too few open files, a full promise of held requests and a folder that is a file are told with a remedy',
  async t => {
    const folder = emptyFolder(t)
    const data = testdir(t, {})
    chmodSync(data, 0o750)
    writeFileSync(`${folder}/file`, '')
    const many = { System: { Server: { MaxConnections: 2_000_000_000 } } }
    const held = { HumanInTheLoop: { MaxStoredBytes: 9_000_000_000_000_000 } }
    const { of } = await doctor(folder, { ...many, ...held, Storage: { DataDirectory: data } })
    t.match(of('files'), [{ level: /warn|fail/, text: /can need 2\d{9}/, remedy: /LimitNOFILE=2\d{9}/ }])
    t.match(of('data'), [
      { level: 'warn', text: /may take/, remedy: /lower HumanInTheLoop:MaxStoredBytes/ },
      { level: 'ok' },
    ])
    const other = await doctor(folder, { Storage: { DataDirectory: 'file/data' } })
    t.match(other.of('data'), [{ level: 'fail', text: /cannot be read \(ENOTDIR\)/, remedy: /chown/ }])
  },
)

t.test(
  'a database that cannot be reached fails, and what is told to people has the remedy on a line of its own',
  async t => {
    const folder = emptyFolder(t)
    const Storage = {
      Provider: 'PostgreSQL',
      PostgreSQL: { ConnectionString: 'postgres://gateway:k@127.0.0.1:1/gateway' },
    }
    const Security = { AgentAuth: { TokenIssuance: { Secret: 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe' } } }
    const { of, text } = await doctor(folder, { Storage, Security })
    t.match(of('database'), [{ level: 'fail', text: /nothing listens there/, remedy: null }])
    t.strictSame(of('data'), [])
    t.notMatch(text, ':k@')
    const shell = fakeShell(['doctor', '--config', `${folder}/gateway.yaml`])
    t.equal(await runCommand(shell), 1)
    t.match(shell.printed.join('\n'), /^(ok|warn) +files +this process may open.*\n( {25}Set .*\n)?fail +database /)
  },
)
