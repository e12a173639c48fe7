/** One time limit holds for all addresses of a name together. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import t, { type Test } from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'

const ca = readFileSync(certFile, 'utf8')

/** A TLS server at `good`; at the other addresses the same port takes connections and says nothing. */
async function startPort(t: Test, good: string, silent: readonly string[]): Promise<number> {
  const sockets = new Set<Socket>()
  const secure = createTls({ cert: ca, key: readFileSync(keyFile) })
  const servers = [secure, ...silent.map(() => createTcp())]
  let port = 0
  for (const [i, address] of [good, ...silent].entries()) {
    const server = servers[i] ?? secure
    server.on('connection', socket => sockets.add(socket.on('error', () => {})))
    await new Promise<void>(resolve => server.listen(port, address, resolve))
    port = (server.address() as AddressInfo).port
  }
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    for (const server of servers) server.close()
  })
  return port
}

interface Result {
  readonly fault: string | undefined
  readonly address: string | undefined
  readonly ms: number
}

function dialled(port: number, addresses: readonly string[], limits: { ms: number; within?: number }): Promise<Result> {
  const dial = createDial({ connectTimeoutMs: limits.ms, ca })
  const origin = createOrigin('https', 'idp.test', port)
  const begun = performance.now()
  return new Promise(resolve => {
    dial(addresses, { origin, http2: false, withinMs: limits.within }, (error, socket, address) => {
      socket?.destroy()
      const fault = (error as { fault?: string } | null)?.fault
      resolve({ fault, address, ms: performance.now() - begun })
    })
  })
}

const silent = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5']

t.test('addresses that say nothing take no more time together than one may', async t => {
  const port = await startPort(t, '127.0.0.1', silent)
  const { fault, ms } = await dialled(port, silent, { ms: 3_000 })
  t.equal(fault, 'connect_timeout')
  // Each with its own time would take 12 s. Between the two is room for a busy machine.
  t.ok(ms >= 2_990 && ms < 11_900, `${ms} ms`)
})

t.test('an address that says nothing leaves time to the next', async t => {
  const port = await startPort(t, '127.0.0.1', silent)
  const { address } = await dialled(port, ['127.0.0.2', '127.0.0.3', '127.0.0.1'], { ms: 9_000 })
  t.equal(address, '127.0.0.1')
})

t.test('a caller may allow less time, and not more', async t => {
  const port = await startPort(t, '127.0.0.1', silent)
  const less = await dialled(port, ['127.0.0.2'], { ms: 60_000, within: 50 })
  t.match(less, { fault: 'connect_timeout' })
  const more = await dialled(port, ['127.0.0.2'], { ms: 50, within: 60_000 })
  t.match(more, { fault: 'connect_timeout' })
  t.ok(less.ms < 50_000 && more.ms < 50_000)
})
