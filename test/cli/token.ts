import { chmodSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'

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

t.test('the configured credential of the first admin needs no file', async t => {
  const { agentId, clientSecret } = credential
  const gateway = await startGateway(t, {
    config: { Security: { Bootstrap: { AgentId: agentId, ClientSecret: clientSecret } } },
    // The fixture of the gateway reads it; a gateway does not, when it is configured.
    directory: t.testdir({ data: { 'bootstrap.json': JSON.stringify(credential) }, elsewhere: {} }),
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
  const cwd = t.testdir({ data: { 'bootstrap.json': JSON.stringify(credential) }, empty: {} })
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
  t.match(await asked(cwd, port), /No gateway answers at http:\/\/127\.0\.0\.1:\d+\. Start it/)
  t.match(await asked(`${cwd}/empty`, port), /bootstrap\.json holds no credential\. Start the gateway once/)
})
