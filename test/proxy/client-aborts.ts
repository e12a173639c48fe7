/** Threat T32 of SECURITY.md. */
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()
const auth = { 'Gateway-Authorization': `Bearer ${token}` }

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

t.test('a client that leaves before the answer cancels the upstream request', async t => {
  const origin = await startOrigin(t, () => {})
  const leave = new AbortController()
  const call = gateway.proxy(token, `${origin.url}/`, { signal: leave.signal })
  await until(() => origin.seen.length === 1)
  leave.abort()
  await t.rejects(call)
  for (const socket of origin.sockets) await once(socket, 'close')
  t.equal(origin.sockets.size, 0)
})

t.test('a client that leaves in the middle of its upload leaves no whole request upstream', async t => {
  const origin = await startOrigin(t, () => {})
  const call = request(`${gateway.url}/proxy/${origin.url}/`, {
    method: 'POST',
    headers: { ...auth, 'Content-Length': '1000000' },
  })
  call.on('error', () => {})
  call.write('some of it')
  await until(() => (origin.seen[0]?.bodyBytes ?? 0) > 0)
  call.destroy()
  await until(() => origin.seen[0]?.aborted === true)
  t.equal(origin.seen[0]?.done, false)
})

t.test('a client that leaves while its body is decided is no fault of the gateway', async t => {
  const conditions = [{ field: 'input.bodyText', operator: 'detects', value: ['secret', 'pii'] }]
  const policyName = await gateway.policy({
    name: 'reads-all',
    default: 'Allow',
    rules: [{ name: 'secrets', effect: 'Deny', conditions }],
  })
  const reader = await gateway.agent({ policyName })
  const body = 'AA11 BB22 CC33 '.repeat(40_000)
  const before = gateway.log.length
  // When exactly the last byte is there is not seen from outside.
  const calls = 30
  const ended = () => gateway.log.slice(before).filter(({ message }) => message === 'exchange').length
  for (let turns = 0; turns < calls; turns++) {
    await until(() => ended() === turns)
    const raw = await openRaw(t, gateway.port)
    const fields = `Gateway-Authorization: Bearer ${reader.token}\r\nContent-Length: ${body.length}`
    const request = `POST /proxy/http://127.0.0.1:9/ HTTP/1.1\r\nHost: x\r\n${fields}\r\n\r\n${body}`
    await new Promise(resolve => void raw.socket.write(request.slice(0, -1), resolve))
    // A reset drops what was not read yet.
    await until(() => gateway.gateway.inFlight() > 0)
    await new Promise(resolve => void raw.socket.write(' ', resolve))
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
    raw.socket.resetAndDestroy()
  }
  await until(() => ended() === calls)
  t.strictSame(
    gateway.log.slice(before).filter(({ level }) => level === 'error'),
    [],
  )
})

t.test('a client that leaves in the middle of a download cancels it', async t => {
  let closed = false
  const origin = await startOrigin(t, (_req, res) => {
    res.on('close', () => {
      closed = true
    })
    res.write('x'.repeat(100))
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(`GET /proxy/${origin.url}/ HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`)
  await raw.until(/x{100}/)
  raw.socket.destroy()
  await until(() => closed)
  t.pass('the upstream was told')
})

t.test('an upstream that answers before the upload is over ends the exchange, and the connection with it', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(413, { 'Content-Length': '8' }).end('too much')
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(
    `POST /proxy/${origin.url}/ HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\nContent-Length: 1000000\r\n\r\nsome of it`,
  )
  const received = await raw.closed()
  t.match(received, /^HTTP\/1.1 413/)
  t.match(received, /too much$/)
  t.match(received, /connection: close/i)
})

t.test('a client that neither sends its body nor leaves is cut off', async t => {
  const origin = await startOrigin(t, () => {})
  const impatient = await startGateway(t, { config: { System: { Server: { IdleTimeoutSeconds: 1 } } } })
  const agent = await impatient.agent()
  const raw = await openRaw(t, impatient.port)
  raw.write(
    `POST /proxy/${origin.url}/ HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${agent.token}\r\nContent-Length: 10\r\n\r\nabc`,
  )
  await raw.closed()
  await until(() => origin.seen[0]?.aborted === true)
  t.equal(origin.seen[0]?.done, false)
})
