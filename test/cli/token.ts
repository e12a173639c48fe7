import { chmodSync, copyFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startBare, startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const secret = 'a-secret-of-the-tests'
const credential = { agentId: '00000000-0000-4000-8000-000000000001', clientSecret: secret }
const portOf = (port: number) => ({ SYSTEM__SERVER__HTTP__PORT: String(port) })

t.test('prints a token that the management API takes, alone on a line', async t => {
  const gateway = await startGateway(t)
  const { code, out, err } = await runToEnd(t, ['token'], { cwd: gateway.directory, env: portOf(gateway.port) })
  t.strictSame([code, err], [0, ''])
  t.match(out, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  t.equal((await gateway.manage('GET', '/agents', undefined, out.trim())).status, 200)
})

t.test('commands call with the token of AGENT_GATEWAY_TOKEN, where there is no other credential', async t => {
  const gateway = await startGateway(t)
  const config = join(testdir(t, { 'gateway.yaml': '{}' }), 'gateway.yaml')
  const run = async (args: readonly string[], token: string) => {
    const shell = fakeShell([...args, '--at', gateway.url, '--config', config], { AGENT_GATEWAY_TOKEN: token })
    return [await runCommand(shell), shell.complained.join()] as const
  }
  for (const args of [['budget', 'list'], ['fleet', 'status'], ['console']]) {
    t.strictSame(await run(args, gateway.adminToken), [0, ''], args.join(' '))
    const [code, said] = await run(args, 'other')
    t.equal(code, 1, args.join(' '))
    t.match(said, /answered 401|gave no link/, args.join(' '))
    t.match(said, /The token in Authorization is not a JSON Web Token/, 'what is wrong with it')
    t.match(said, /That token is in AGENT_GATEWAY_TOKEN/, 'and where it is from')
  }
  t.match(await run(['token'], gateway.adminToken), [1, /contains no credential/], 'one that ends is not printed again')
})

t.test('the configured credential of the first admin needs no file', async t => {
  const { agentId, clientSecret } = credential
  const gateway = await startGateway(t, {
    config: { Security: { Bootstrap: { AgentId: agentId, ClientSecret: clientSecret } } },
    // The fixture of the gateway reads it; a gateway does not, when it is configured.
    directory: testdir(t, { data: { 'bootstrap.json': JSON.stringify(credential) }, elsewhere: {} }),
  })
  const env = {
    ...portOf(gateway.port),
    SECURITY__BOOTSTRAP__AGENTID: agentId,
    SECURITY__BOOTSTRAP__CLIENTSECRET: clientSecret,
  }
  const { code, out } = await runToEnd(t, ['token'], { cwd: `${gateway.directory}/elsewhere`, env })
  t.equal(code, 0)
  t.match(out, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
})

t.test('says what to do when there is no token to be had', async t => {
  const server = createServer((_req, res) => res.writeHead(status).end('{}'))
  let status = 200
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const cwd = testdir(t, {
    data: { 'bootstrap.json': JSON.stringify(credential) },
    empty: {},
    fresh: { 'gateway.yaml': '' },
  })
  const asked = async (folder: string, at: number) => {
    const { code, out, err } = await runToEnd(t, ['token'], { cwd: folder, env: portOf(at) })
    t.strictSame([code, out], [1, ''])
    t.notMatch(err, secret)
    t.equal(err.trim().split('\n').length, 1)
    return err
  }
  t.match(await asked(cwd, port), /others can read this secret\. Run: chmod 600/)
  chmodSync(`${cwd}/data/bootstrap.json`, 0o600)
  t.match(await asked(cwd, port), /answered 200, not with a token/)
  status = 401
  t.match(await asked(cwd, port), /does not accept the credential/)
  server.close()
  t.match(await asked(cwd, port), /No gateway answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)\. Start it/)
  t.match(
    await asked(`${cwd}/empty`, port),
    /There is no gateway\.yaml here, and .*bootstrap\.json contains no credential\. Go to the folder .* --config/,
  )
  t.match(
    await asked(`${cwd}/fresh`, port),
    /bootstrap\.json contains no credential\. The first start of the gateway writes it; .*admin reset/,
  )
})

const printsToken = async (t: Test, cwd: string, env: Record<string, string>, ...args: string[]) => {
  const { code, out, err } = await runToEnd(t, ['token', ...args], { cwd, env })
  t.strictSame([code, err], [0, ''])
  t.match(out, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
}

t.test('asks over the unix socket when there is no port, or when an option says so', async t => {
  const directory = testdir(t)
  await startBare(t, {
    config: { System: { Server: { Http: { Enabled: false }, Unix: { Path: 'g.sock' } } } },
    directory,
  })
  await printsToken(t, directory, {
    SYSTEM__SERVER__HTTP__ENABLED: 'false',
    SYSTEM__SERVER__UNIX__PATH: 'g.sock',
  })
  await printsToken(t, directory, {}, '--at', `unix:${directory}/g.sock`)
  const { err } = await runToEnd(t, ['token', '--at', 'here'], { cwd: directory })
  t.match(err, /^agent-gateway: here is not an address\. Use one such as /)
})

t.test('over TLS it trusts the certificate of the configuration and no other', async t => {
  const directory = testdir(t, { policies: {} })
  for (const name of ['cert.pem', 'key.pem', 'renewed-cert.pem', 'renewed-key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)), join(directory, name))
    chmodSync(join(directory, name), 0o600)
  }
  const Tls = { CertificateFile: 'cert.pem', KeyFile: 'key.pem' }
  const { addresses } = await startBare(t, { config: { System: { Server: { Tls } } }, directory })
  const env = (certificate: string, key: string) => ({
    ...portOf(addresses[0]?.port ?? 0),
    SYSTEM__SERVER__TLS__CERTIFICATEFILE: certificate,
    SYSTEM__SERVER__TLS__KEYFILE: key,
  })
  await printsToken(t, directory, env('cert.pem', 'key.pem'))
  const other = await runToEnd(t, ['token'], { cwd: directory, env: env('renewed-cert.pem', 'renewed-key.pem') })
  t.equal(other.code, 1)
  t.match(other.err, /^agent-gateway: No gateway answers at https:\/\/127\.0\.0\.1:\d+ \([A-Z_]+\)/)
})
