import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { chdir, cwd } from 'node:process'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const policy =
  'name: reading\nrules:\n  - { name: get, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }\n'

t.test('names what is in order', async t => {
  const folder = testdir(t, { 'gateway.yaml': '', policies: { 'reading.yaml': policy } })
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`])
  t.equal(await runCommand(shell), 0)
  t.strictSame(shell.printed, [`${folder}/gateway.yaml: no mistakes; policies: reading (1 rule)`])
})

t.test('names every mistake in the policies with its place', async t => {
  const folder = testdir(t, {
    'gateway.yaml': 'Policy: { Global: guard }\nPolicies: [{ name: inline, default: Maybe }]\n',
    policies: { 'a.yaml': policy.replace('operator: eq', 'operator: qe'), 'b.yaml': 'name: [' },
  })
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`])
  t.equal(await runCommand(shell), 1)
  const text = shell.complained.join('\n')
  t.match(text, /policies\/a\.yaml:3:\d+: rules\[0\]\.conditions\[0\].*E_OPERATOR/)
  t.match(text, /policies\/b\.yaml:\d+:\d+: .*E_YAML/)
  t.match(text, /gateway\.yaml: Policies\[0\]: default: .*E_EFFECT/)
  t.match(text, /Policy:Global: there is no policy named guard/)
  t.strictSame(shell.printed, [])
})

t.test('a policy that fails its tests is a mistake, as it is at the start', async t => {
  const wrong =
    'policy: reading\ntests:\n  - { name: post, request: { method: POST, url: https://a.example/ }, expect: { decision: Allow } }\n'
  const folder = testdir(t, { 'gateway.yaml': '', policies: { 'reading.yaml': policy, 'reading.test.yaml': wrong } })
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`])
  t.equal(await runCommand(shell), 1)
  t.match(shell.complained, [/reading\.test\.yaml:3:5: post: decision: expected Allow, was Deny.*E_TEST/])
  t.strictSame(shell.printed, [])
})

t.test('names every mistake in the configuration', async t => {
  const folder = testdir(t, { 'gateway.yaml': 'System: { Servr: {} }\nLogging: { Level: loud }\n' })
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`], { PROXY__VIA: 'perhaps' })
  t.equal(await runCommand(shell), 1)
  t.strictSame(shell.complained.join('\n').split('\n').slice(1), [
    `  ${folder}/gateway.yaml:1:11: System:Servr: unknown key, did you mean Server?`,
    `  ${folder}/gateway.yaml:2:12: Logging:Level: must be one of debug, info, warn, error, silent`,
    '  env PROXY__VIA: must be true or false',
  ])
})

t.test('a file that was asked for must be there; without one, defaults and environment apply', async t => {
  const before = cwd()
  t.teardown(() => chdir(before))
  chdir(testdir(t, {}))
  const missing = fakeShell(['check', '--config', 'other.yaml'])
  t.equal(await runCommand(missing), 1)
  t.match(missing.complained[0], /other\.yaml cannot be read \(ENOENT\)\. Name another file with --config\./)

  const none = fakeShell(['check'])
  t.equal(await runCommand(none), 0)
  t.strictSame(none.printed, ['defaults and environment: no mistakes; policies: none'])
})

t.test('names what is wrong with the certificate', async t => {
  const Tls = '{ CertificateFile: cert.pem, KeyFile: key.pem }'
  const folder = testdir(t, { 'gateway.yaml': `System: { Server: { Tls: ${Tls} } }`, 'cert.pem': 'x', 'key.pem': 'y' })
  chmodSync(`${folder}/key.pem`, 0o600)
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`])
  t.equal(await runCommand(shell), 1)
  t.strictSame(shell.complained, [
    `System:Server:Tls:CertificateFile: ${folder}/cert.pem contains no certificate in PEM form.`,
  ])

  writeFileSync(`${folder}/gateway.yaml`, 'System: { Server: { Tls: { CertificateFile: cert.pem } } }')
  const half = fakeShell(['check', '--config', `${folder}/gateway.yaml`])
  t.equal(await runCommand(half), 1)
  t.match(
    half.complained[0],
    /gateway\.yaml:1:\d+: System:Server:Tls:KeyFile: CertificateFile and KeyFile must both be set, or/,
  )
})

t.test('names everything else that would stop the start', async t => {
  const folder = testdir(t, {
    'gateway.yaml': `
Upstreams: [{ Host: a.example, ValueFromEnv: NO_SUCH_KEY }]
System: { Server: { Tls: { CertificateFile: none.pem, KeyFile: none.key } } }
`,
    'hooks.yaml': 'HumanInTheLoop: { Webhooks: [{ Url: "http://169.254.169.254/" }] }',
    'authorities.yaml': 'Proxy: { CaFile: authorities.pem }',
    'authorities.pem': 'x',
  })
  const complaints = async (file: string, env = {}) => {
    const shell = fakeShell(['check', '--config', `${folder}/${file}`], env)
    t.equal(await runCommand(shell), 1)
    return shell.complained
  }
  t.strictSame(await complaints('gateway.yaml'), [
    `System:Server:Tls:CertificateFile: ${folder}/none.pem cannot be read (ENOENT).`,
    'Upstreams[0]: the environment variable NO_SUCH_KEY does not exist.',
  ])
  t.match(await complaints('hooks.yaml'), [/^HumanInTheLoop:Webhooks\[0\]:Url: Egress refuses this destination/])
  t.strictSame(await complaints('authorities.yaml'), [
    `Proxy:CaFile: ${folder}/authorities.pem contains no certificate in PEM form.`,
  ])
  t.match(await complaints('authorities.yaml', { PROXY__CAFILE: 'none.pem' }), [/none\.pem cannot be read \(ENOENT\)/])
})

/** What `check` complains of with this configuration file and environment. */
async function complaints(folder: string, yaml: string, env = {}): Promise<string> {
  writeFileSync(`${folder}/gateway.yaml`, yaml)
  const shell = fakeShell(['check', '--config', `${folder}/gateway.yaml`], { SYSTEM__SERVER__HTTP__PORT: '0', ...env })
  const code = await runCommand(shell)
  t.equal(code, shell.complained.length > 0 ? 1 : 0)
  return shell.complained.join('\n')
}

t.test('a folder of policies that was named must be there', async t => {
  const folder = testdir(t, {})
  t.match(
    await complaints(folder, 'Policy: { Directory: polcies }'),
    /^Policy:Directory: .*\/polcies does not exist\. Correct it, or create the folder\.$/,
  )
  mkdirSync(`${folder}/polcies`)
  t.equal(await complaints(folder, 'Policy: { Directory: polcies }'), '')
})

t.test('the data folder must be writable, and its secrets private', async t => {
  const folder = testdir(t, { file: '', data: { 'signing.key': 'x' } })
  t.equal(await complaints(folder, 'Storage: { DataDirectory: new/one }'), '')
  for (const DataDirectory of ['file', 'file/data', '/proc/data']) {
    const said = await complaints(folder, `Storage: { DataDirectory: ${DataDirectory} }`)
    t.match(said, /cannot be written \(E[A-Z]+\)\. Set Storage:DataDirectory to a writable folder\.$/, DataDirectory)
  }
  chmodSync(`${folder}/data/signing.key`, 0o644)
  t.match(await complaints(folder, ''), /signing\.key: others can read this secret/)
})

t.test('the addresses must be of this machine, and free unless a gateway answers there', async t => {
  const folder = testdir(t, {})
  const at = (Host: string) => complaints(folder, `System: { Server: { Http: { Host: ${Host} } } }`)
  t.match(await at('192.0.2.1'), /192\.0\.2\.1 is not an address of this machine\. Set System:Server:Http:Host/)
  const port = (SYSTEM__SERVER__HTTP__PORT: number) => complaints(folder, '', { SYSTEM__SERVER__HTTP__PORT })
  const other = createServer(socket => socket.on('error', () => {}).end())
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  t.match(await port((other.address() as AddressInfo).port), /in use\. Stop what listens there/)
  t.equal(await port((await startGateway(t)).port), '')
  const unix = (path: string) => complaints(folder, `System: { Server: { Unix: { Path: ${path} } } }`)
  t.match(await unix('none/gateway.sock'), /none is not a folder\. Create it, or set System:Server:Unix:Path/)
  t.match(await unix('gateway.yaml'), /exists and is not a socket/)
  t.equal(await unix('gateway.sock'), '')
})

t.test('a scheme before a credential ends with a space', async t => {
  const folder = testdir(t, {})
  const entry = (fields: string) =>
    complaints(folder, `Upstreams: [{ Host: a.example, ValueFromEnv: KEY, ${fields} }]`, { KEY: 'k' })
  const problem = /Upstreams: entry 0: Prefix must end with a space, in quotes: "Bearer "/
  for (const fields of ['Prefix: Bearer', 'Prefix: ApiKey', 'Header: X-Api-Key, Prefix: bearer']) {
    t.match(await entry(fields), problem, fields)
  }
  for (const fields of ['Prefix: "Bearer "', 'Prefix: "Token token="', 'Header: X-Api-Key, Prefix: sk-']) {
    t.equal(await entry(fields), '', fields)
  }
})

t.test('a variable that looks like a setting and is not read is named', async t => {
  const folder = testdir(t, {})
  const names = {
    SYSTEM_SERVER_HTTP_PORT: 'SYSTEM__SERVER__HTTP__PORT',
    'System:Server:Http:Port': 'SYSTEM__SERVER__HTTP__PORT',
    SYSTM__SERVER__HTTP__PORT: 'SYSTEM__SERVER__HTTP__PORT',
    Policy_Directory: 'POLICY__DIRECTORY',
  }
  for (const [name, right] of Object.entries(names)) {
    t.equal(
      await complaints(folder, '', { [name]: '1' }),
      `env ${name}: is not read: the name of the setting is ${right}`,
    )
  }
  t.equal(await complaints(folder, '', { HOSTS: '1', SYSTEM: '1', MY__OWN: '1', PROXY_URL: '1', LANG: 'C' }), '')
})

t.test('with --json the result is one line, whatever is wrong', async t => {
  const bad = testdir(t, { 'gateway.yaml': 'Logging: { Level: loud }\n' })
  const rule = '{ name: get, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }'
  const good = testdir(t, { 'gateway.yaml': '{}\n', policies: { 'shop.yaml': `name: shop\nrules:\n  - ${rule}\n` } })
  const mistake = `${bad}/gateway.yaml:1:12: Logging:Level: must be one of debug, info, warn, error, silent`
  for (const [folder, code, result] of [
    [bad, 1, { ok: false, mistakes: [mistake], policies: [] }],
    [good, 0, { ok: true, mistakes: [], policies: [{ name: 'shop', rules: 1 }] }],
  ] as const) {
    const shell = fakeShell(['check', '--json', '--config', `${folder}/gateway.yaml`])
    t.equal(await runCommand(shell), code)
    t.strictSame([shell.printed.map(line => JSON.parse(line)), shell.complained], [[result], []])
  }
})
