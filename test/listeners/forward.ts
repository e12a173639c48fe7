/** Where the forward proxy listens. */
import { chmodSync, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { entrypointsOf } from '../../src/gateway/entrypoints.ts'
import { call, callSecurely } from '../fixtures/call.ts'
import { testConfig } from '../fixtures/gateway.ts'
import { runMain, runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const asked = { method: 'GET', path: 'http://127.0.0.1:9/' }
const unanswered = { status: 407, headers: { 'gateway-error': 'proxy_authentication_required' } }

const settings = (more: string) => ({
  'gateway.yaml': `{ System: { Server: { Http: { Port: 0 } } }, ForwardProxy: { Enabled: true, Port: 0, ${more} } }`,
})

/** A gateway of its own process, with its start block and the ports in it. */
async function start(t: Parameters<typeof testdir>[0], cwd: string, env = {}) {
  const run = runMain(t, ['serve'], { cwd, env })
  await run.shows(/agent-gateway is ready/)
  const [, url = '', port = 0] = /Forward proxy\s+(https?:\/\/[\d.]+:(\d+))/.exec(run.err()) ?? []
  return { run, url, port: Number(port) }
}

t.test('it listens on its port and its unix socket, and the start says where', async t => {
  const cwd = testdir(t, settings('UnixPath: forward.sock'))
  const { run, url, port } = await start(t, cwd)
  t.match(url, /^http:/)
  t.match(run.err(), `Forward proxy  unix:${join(cwd, 'forward.sock')}\n`)
  t.notMatch(run.err(), /ForwardProxy:Host/)
  t.match(await call({ ...asked, host: '127.0.0.1', port }), unanswered)
  t.match(await call({ ...asked, socketPath: join(cwd, 'forward.sock') }), unanswered)
})

t.test('with a certificate it is TLS, but not at a loopback address', async t => {
  for (const [host, scheme] of [
    ['0.0.0.0', 'https'],
    ['127.0.0.1', 'http'],
  ] as const) {
    const cwd = testdir(t, settings(`Host: "${host}"`))
    for (const name of ['cert.pem', 'key.pem']) {
      copyFileSync(fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)), join(cwd, name))
    }
    chmodSync(join(cwd, 'key.pem'), 0o600)
    const tls = { SYSTEM__SERVER__TLS__CERTIFICATEFILE: 'cert.pem', SYSTEM__SERVER__TLS__KEYFILE: 'key.pem' }
    const { url, port } = await start(t, cwd, tls)
    t.match(url, `${scheme}://${host}:`)
    const options = { ...asked, host: '127.0.0.1', port }
    t.match(
      await (scheme === 'https' ? callSecurely({ ...options, rejectUnauthorized: false }) : call(options)),
      unanswered,
    )
  }
})

t.test('an address that others can reach without TLS is a warning', async t => {
  const { run } = await start(t, testdir(t, settings('Host: "0.0.0.0"')))
  t.match(run.err(), /Warning\s+ForwardProxy:Host: tokens come in the clear/)
})

t.test('agent-gateway check finds no fault with the ports of the gateway that runs', async t => {
  const cwd = testdir(t, settings(''))
  const { port } = await start(t, cwd)
  const env = { FORWARDPROXY__PORT: String(port), SYSTEM__SERVER__HTTP__PORT: '0' }
  t.match(await runToEnd(t, ['check'], { cwd, env }), { code: 0 })
})

t.test('a socket that is named forward is for it, and needs it to be enabled', async t => {
  const passedSockets = [{ fd: 3 }, { fd: 4, name: 'forward' }]
  const at = (Enabled: boolean) =>
    entrypointsOf({ config: testConfig({ ForwardProxy: { Enabled } }), baseDirectory: '/', passedSockets })
  t.match(at(true), [{ listen: [{ fd: 3 }] }, { listen: [{ fd: 4, name: 'forward' }] }])
  t.throws(() => at(false), /passed for forward. Set ForwardProxy:Enabled to true/)
})
