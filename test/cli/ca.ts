import { X509Certificate } from 'node:crypto'
import t, { type Test } from 'tap'
import { connectBytes } from '../fixtures/forward.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'
import { openRaw } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const forward = {
  config: { ForwardProxy: { Enabled: true, Port: 0 } },
  alone: 'the command looks into its data folder',
}

/** A gateway with a forward proxy, and the command beside it. */
async function start(t: Test) {
  const gateway = await startGateway(t, forward)
  const env = { SYSTEM__SERVER__HTTP__PORT: String(gateway.port) }
  return { gateway, ca: (...args: string[]) => runToEnd(t, ['ca', ...args], { cwd: gateway.directory, env }) }
}

t.test('shows the authority of the running gateway, for people, programs and files', async t => {
  const { ca, gateway } = await start(t)
  const pem = await ca('show', '--pem')
  t.equal(pem.out, (await gateway.manage('GET', '/forward-proxy/ca.pem')).text)
  const { fingerprint256, validToDate } = new X509Certificate(pem.out)
  const [only] = JSON.parse((await ca('show', '--json')).out)
  t.match(only, { fingerprint: fingerprint256, validUntil: validToDate.toISOString() })
  t.match(await ca('show'), {
    code: 0,
    err: '',
    out: new RegExp(`^CN=agent-gateway CA .* \\(in use\\)\\n.*${fingerprint256}`),
  })
  t.match(await ca('show', '--pem', '--json'), { code: 2, err: /exclude each other/ })
})

t.test('rotates the authority of the running gateway, and shows both', async t => {
  const { ca, gateway } = await start(t)
  const rotated = await ca('rotate', '--permit', 'example.com')
  t.match(rotated, { code: 0, err: '', out: /^SHA-256 [0-9A-F:]{95}, valid until / })
  const shown = JSON.parse((await ca('show', '--json')).out)
  t.equal(shown.length, 2)
  t.ok(rotated.out.includes(shown[0].fingerprint))
  t.match((await gateway.manage('GET', '/audit?action=ca.use')).text, /"permitted":\["example\.com"\]/)
  t.match(await ca('rotate', '--permit-all', '--drop-old'), { code: 0 })
  t.equal(JSON.parse((await ca('show', '--json')).out).length, 1)
})

t.test('refuses hosts that are none', async t => {
  const { ca } = await start(t)
  t.match(await ca('rotate', '--permit', 'https://example.com'), {
    code: 2,
    err: /--permit https:\/\/example\.com: must be/,
  })
  t.match(await ca('rotate', '--permit', 'a.example', '--permit-all'), { code: 2, err: /exclude each other/ })
})

t.test('says why a gateway has no authority to show or to rotate', async t => {
  const gateway = await startGateway(t)
  const setup = { cwd: gateway.directory, env: { SYSTEM__SERVER__HTTP__PORT: String(gateway.port) } }
  for (const name of ['show', 'rotate']) {
    t.match(await runToEnd(t, ['ca', name], setup), { code: 1, out: '', err: /ForwardProxy:Enabled is false/ }, name)
  }
  const env = { SYSTEM__SERVER__HTTP__PORT: '1' }
  t.match(await runToEnd(t, ['ca', 'show'], { ...setup, env }), { code: 1, err: /No gateway answers/ })
})

t.test('creates an authority that the gateway uses from its first start on', async t => {
  const directory = testdir(t)
  const create = (...args: string[]) => runToEnd(t, ['ca', 'create', ...args], { cwd: directory })
  const created = await create('--permit', 'example.com', '--permit', '10.0.0.0/8')
  t.match(created, { code: 0, err: '', out: /data\/ca\.key: CN=agent-gateway CA / })
  const gateway = await startGateway(t, { ...forward, directory })
  const { fingerprint256 } = new X509Certificate((await gateway.manage('GET', '/forward-proxy/ca.pem')).text)
  t.ok(created.out.includes(fingerprint256))
  t.match((await gateway.manage('GET', '/audit?action=ca.use')).text, /"permitted":\["example\.com","10\.0\.0\.0\/8"\]/)
  const authorization = `Bearer ${(await gateway.agent()).token}`
  const connect = async (to: string) => {
    const client = await openRaw(t, gateway.addresses.find(({ only }) => only === 'forward')?.port ?? 0)
    client.write(connectBytes({ to, authorization }))
    return client.until(/\r\n\r\n/)
  }
  t.match(await connect('api.example.com:443'), /^HTTP\/1\.1 200 /)
  t.match(await connect('example.org:443'), /^HTTP\/1\.1 403 .*\r\nGateway-Error: egress_denied\r\n/s)
  t.match(await create(), { code: 1, err: /is there already\. To replace it: agent-gateway ca rotate/ })
})

t.test('creates none beside one that is configured', async t => {
  const env = { FORWARDPROXY__CA__CERTIFICATEFILE: 'ca.pem', FORWARDPROXY__CA__KEYFILE: 'key.pem' }
  t.match(await runToEnd(t, ['ca', 'create'], { cwd: testdir(t), env }), { code: 1, err: /names the authority/ })
})
