/**
 * A client that resets its connection at once has no address any more when its request is read: rules that refuse by
 * address let it pass, and the upstream got it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { call, callSecurely } from '../fixtures/call.ts'
import { eventually, startBare } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const abroad = {
  name: 'abroad',
  default: 'Allow',
  rules: [
    {
      name: 'no-loopback',
      effect: 'Deny',
      conditions: [{ field: 'input.clientIp', operator: 'ipIn', value: ['127.0.0.0/8'] }],
    },
  ],
}

interface Call {
  readonly port: number
  readonly path: string
  readonly method: string
  readonly headers: Record<string, string>
}

/** Sends `request` over `socket`, which lies on `raw`, and resets the connection before it can be answered. */
const sendAndReset = 'socket.write(request); setImmediate(() => raw.resetAndDestroy())'

async function start(t: Parameters<typeof startBare>[0], Tls: object = {}) {
  const directory = testdir(t, { policies: {} })
  for (const name of ['cert.pem', 'key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)), join(directory, name))
    chmodSync(join(directory, name), 0o600)
  }
  const config = {
    // It makes the credential of the first admin.
    Storage: { Provider: 'Sqlite' },
    ...{ Policies: [abroad], Policy: { AssignOnRegistration: 'abroad' }, System: { Server: { Tls } } },
  }
  const gateway = await startBare(t, { directory, config })
  const origin = await startOrigin(t)
  const [address] = gateway.addresses
  const port = address?.port ?? 0
  const login: Call = {
    port,
    path: '/tokens',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
  }
  const credential = readFileSync(join(directory, 'data/bootstrap.json'), 'utf8')
  const send = (options: Call, body?: string) =>
    address?.url.startsWith('https:')
      ? callSecurely({ ...options, rejectUnauthorized: false }, body)
      : call({ ...options, host: '127.0.0.1' }, body)
  const token = `Bearer ${JSON.parse((await send(login, credential)).text).accessToken}`
  const fields = `Host: g\r\nGateway-Authorization: ${token}\r\nContent-Length: 2\r\n`
  const request = JSON.stringify(`POST /proxy/${origin.url}/ HTTP/1.1\r\n${fields}\r\nhi`)
  // From here on the token is known, and a request with it is decided on as soon as it is read.
  const refused = await send({
    port,
    path: `/proxy/${origin.url}/`,
    method: 'POST',
    headers: { 'Gateway-Authorization': token },
  })
  t.match(refused, { status: 403, headers: { 'gateway-error': 'policy_denied' } })
  /** Nothing that was open is open any more. */
  const settled = () =>
    eventually(
      () => gateway.gateway.inFlight(),
      count => count === 0,
    )
  return { port, origin, request, settled, log: gateway.log }
}

t.test('a client that has reset its connection before it is accepted gets nowhere', async t => {
  const { port, origin, request, settled, log } = await start(t)
  const script = `
    const request = ${request}
    const raw = require('node:net').connect(${port}, '127.0.0.1', () => {
      const socket = raw
      ${sendAndReset}
    })`
  // Nothing is accepted while this thread waits.
  spawnSync(process.execPath, ['-e', script])
  await new Promise(resolve => setTimeout(resolve, 100))
  await settled()
  t.equal(origin.seen.length, 0)
  t.notOk(log.some(({ decision }) => decision === 'Allow'))
})

t.test('so does one that resets it after the handshake of TLS', async t => {
  const Tls = { CertificateFile: 'cert.pem', KeyFile: 'key.pem' }
  const { port, origin, request, settled, log } = await start(t, Tls)
  const script = `
    const request = ${request}
    const raw = require('node:net').connect(${port}, '127.0.0.1', () => {
      const socket = require('node:tls').connect({ socket: raw, rejectUnauthorized: false }, () => {
        setTimeout(() => console.log('shaken'), 50)
        setTimeout(() => { ${sendAndReset} }, 200)
      })
    })`
  const client = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(client, 'exit')
  await once(client.stdout, 'data')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
  await ended
  await new Promise(resolve => setTimeout(resolve, 100))
  await settled()
  t.equal(origin.seen.length, 0)
  t.notOk(log.some(({ decision }) => decision === 'Allow'))
})
