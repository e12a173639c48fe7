import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, get, type Server } from 'node:http'
import { createServer as createSecureServer, get as getSecurely } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { followConnections } from '../../src/http/follow-connections.ts'

async function listen(t: Test, server: Server): Promise<number> {
  server.on('request', (_, res) => res.end())
  followConnections(server, 60_000)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

function assertStripped(t: Test, socket: Socket): void {
  t.strictSame(socket.eventNames(), ['error'])
  t.doesNotThrow(() => socket.emit('error', new Error('too late')))
}

t.test('a closed connection has no listeners, and those that wait for its end were called', async t => {
  const server = createServer()
  const port = await listen(t, server)
  const opened = once(server, 'connection') as Promise<[Socket]>
  get({ port, agent: false }).on('response', res => res.resume())
  const [socket] = await opened
  await Promise.all([once(socket, 'close'), once(socket, 'close')])
  assertStripped(t, socket)
})

t.test('of TLS, neither the connection nor the socket above it', async t => {
  const file = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))
  const server = createSecureServer({ cert: file('loopback-cert.pem'), key: file('loopback-key.pem') })
  const port = await listen(t, server)
  const opened = once(server, 'connection') as Promise<[Socket]>
  const secured = once(server, 'secureConnection') as Promise<[Socket]>
  getSecurely({ port, agent: false, rejectUnauthorized: false }).on('response', res => res.resume())
  for (const [socket] of await Promise.all([opened, secured])) {
    if (!socket.closed) await once(socket, 'close')
    assertStripped(t, socket)
  }
})
