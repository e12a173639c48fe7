import { once } from 'node:events'
import { chmodSync, copyFileSync, openSync, readFileSync, renameSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { passedSockets } from '../../src/cli/serve.ts'
import { call, callSecurely } from '../fixtures/call.ts'
import { runMain, runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

/** The descriptor of what listens; node keeps it here. */
const descriptorOf = (server: Server) => (server as unknown as { _handle: { fd: number } })._handle.fd

/** Sockets that listen and belong to nobody once `handOver` was called, one of each kind. */
async function openSockets(t: Test, directory: string) {
  const tcp = createServer().listen(0, '127.0.0.1')
  const unix = createServer().listen(join(directory, 'made.sock'))
  t.teardown(() => void [tcp, unix].map(server => server.close()))
  await Promise.all([once(tcp, 'listening'), once(unix, 'listening')])
  // Closing removes the file that it was made with.
  const path = join(directory, 'gateway.sock')
  renameSync(join(directory, 'made.sock'), path)
  const { port } = tcp.address() as AddressInfo
  const handOver = () => void [tcp, unix].map(server => server.close())
  return { port, path, sockets: [descriptorOf(tcp), descriptorOf(unix)], handOver }
}

const yaml = `
Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } }
Policy: { AssignOnRegistration: open }
Policies: [{ name: open, default: Allow }]
`
const settings = { 'gateway.yaml': yaml, policies: {} }

t.test('sockets that systemd passes are listened on instead of the configured port', async t => {
  const { port, path, sockets, handOver } = await openSockets(t, testdir(t))
  const cwd = testdir(t, settings)
  const run = runMain(t, ['serve'], { cwd, sockets })
  await run.shows(/agent-gateway is ready/)
  handOver()
  t.match(run.err(), `Address        http://127.0.0.1:${port}\n  Address        unix: (descriptor 4)\n`)
  t.match(await call({ port, host: '127.0.0.1', path: '/health' }), { status: 200 })
  t.match(await call({ socketPath: path, path: '/health' }), { status: 200 })

  const login = { socketPath: path, path: '/tokens', method: 'POST', headers: { 'Content-Type': 'application/json' } }
  const { text } = await call(login, readFileSync(join(cwd, 'data/bootstrap.json'), 'utf8'))
  const headers = { 'Gateway-Authorization': `Bearer ${JSON.parse(text).accessToken}` }
  const toItself = await call({ socketPath: path, path: `/proxy/http://127.0.0.1:${port}/health`, headers })
  t.match(toItself, { status: 403, headers: { 'gateway-error': 'egress_denied' } }, 'T02 it knows its own port')

  run.child.kill('SIGTERM')
  t.equal(await run.ended, 0)
})

t.test('with a certificate the TCP ones are TLS, the unix ones are not', async t => {
  const { port, path, sockets, handOver } = await openSockets(t, testdir(t))
  const cwd = testdir(t, settings)
  for (const name of ['cert.pem', 'key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)), join(cwd, name))
    chmodSync(join(cwd, name), 0o600)
  }
  const env = { SYSTEM__SERVER__TLS__CERTIFICATEFILE: 'cert.pem', SYSTEM__SERVER__TLS__KEYFILE: 'key.pem' }
  const run = runMain(t, ['serve'], { cwd, sockets, env })
  await run.shows(/agent-gateway is ready/)
  handOver()
  t.match(run.err(), `Address        https://127.0.0.1:${port}\n`)
  t.match(await callSecurely({ port, path: '/health', rejectUnauthorized: false }), { status: 200 })
  t.match(await call({ socketPath: path, path: '/health' }), { status: 200 })
})

t.test('what is not a listening socket is reported in one line', async t => {
  const sockets = [openSync('/dev/null', 'r')]
  const { code, err } = await runToEnd(t, ['serve'], { cwd: testdir(t, settings), sockets })
  t.equal(code, 1)
  t.match(err, /^agent-gateway: Descriptor 3, passed with LISTEN_FDS, is not a listening socket \(\w+\)\.\n$/)
})

t.test('what was passed to another process is not looked at', async t => {
  t.strictSame(passedSockets({ LISTEN_FDS: '2', LISTEN_PID: '7' }, 7), [{ fd: 3 }, { fd: 4 }])
  t.strictSame(passedSockets({ LISTEN_FDS: '2', LISTEN_PID: '7', LISTEN_FDNAMES: 'a:management' }, 7), [
    { fd: 3, name: 'a' },
    { fd: 4, name: 'management' },
  ])
  t.strictSame(passedSockets({ LISTEN_FDS: '2', LISTEN_PID: '7' }, 8), [])
  t.strictSame(passedSockets({ LISTEN_FDS: '2' }, 7), [])
  t.strictSame(passedSockets({ LISTEN_PID: '7' }, 7), [])
  t.throws(() => passedSockets({ LISTEN_FDS: 'x', LISTEN_PID: '7' }, 7), {
    name: 'StartupError',
    message: /LISTEN_FDS/,
  })
})
