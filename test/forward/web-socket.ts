/** WebSockets in TLS tunnels: which handshakes pass, and what ends an open one. Threats T66, T70. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { openSecure, secureSetup, startForward } from '../fixtures/forward.ts'
import { eventually, merge } from '../fixtures/gateway.ts'
import { secureCaFile } from '../fixtures/origin.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const switching = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`

/** An upstream that says back what it gets after a handshake. */
async function startEcho(t: Test) {
  const open = new Set<Duplex>()
  const pair = {
    cert: readFileSync(secureCaFile),
    key: readFileSync(new URL('../fixtures/tls/key.pem', import.meta.url)),
  }
  const server = createServer(pair, (_req, res) => res.end('over HTTP'))
  server.on('upgrade', (_req, socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    socket.write(switching)
    socket.pipe(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { open, to: `idp.test:${(server.address() as AddressInfo).port}` }
}

const { open, to } = await startEcho(t)
const handshake = (path = '/') =>
  `GET ${path} HTTP/1.1\r\nHost: ${to}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`

for (const threads of [1, 2]) {
  t.test(`with ${threads} thread(s)`, async t => {
    const config = merge(secureSetup.config ?? {}, {
      Proxy: { AllowUpgrade: ['idp.test'] },
      System: { Server: { Threads: threads } },
    })
    const gateway = await startForward(t, { ...secureSetup, config })
    const on = (path: string) => [{ field: 'input.path', operator: 'eq', value: path }]
    await gateway.policy({
      name: 'some',
      default: 'Allow',
      rules: [
        { name: 'held', effect: 'Hitl', conditions: on('/held') },
        { name: 'denied', effect: 'Deny', conditions: on('/denied') },
      ],
    })
    const connect = async (t: Test, token: string) => openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
    const openSocket = async (t: Test, token: string) => {
      const client = await connect(t, token)
      client.write(handshake())
      await client.until(/^HTTP\/1\.1 101 .*\r\n\r\n/s)
      client.write('hello')
      await client.until(/hello$/)
      return client
    }

    t.test('what it opens passes bytes both ways, and is logged with its tunnel', async t => {
      const { token, id } = await gateway.agent({ policyName: 'some' })
      const client = await openSocket(t, token)
      client.secure.end()
      await client.closed()
      const lines = await gateway.exchanges(1)
      t.match(lines.at(-1), { road: 'intercepted', agentId: id, status: 101, tunnel: String })
      await eventually(
        () => open.size,
        size => size === 0,
      )
    })

    t.test('T66 a handshake that a rule holds is 426, one that it denies is 403', async t => {
      const { token } = await gateway.agent({ policyName: 'some' })
      for (const [path, status, code] of [
        ['/held', 426, 'websocket_not_supported'],
        ['/denied', 403, 'policy_denied'],
      ] as const) {
        const client = await connect(t, token)
        client.write(handshake(path))
        await client.until(new RegExp(`^HTTP/1\\.1 ${status} [^]*"code":"${code}"`))
        t.equal(open.size, 0)
      }
    })

    t.test('T70 one that is open is cut when its agent, its key or its policy is withdrawn', async t => {
      const bot = await gateway.agent({ policyName: 'some' })
      const made = JSON.parse((await gateway.manage('POST', `/agents/${bot.id}/keys`, { name: 'own' })).text)
      const ofKey = await openSocket(t, made.key)
      const ofAgent = await openSocket(t, bot.token)
      await gateway.manage('DELETE', `/keys/${made.id}`)
      t.match(await ofKey.closed(), /hello$/)
      ofAgent.write('more')
      await ofAgent.until(/hellomore$/)
      await gateway.manage('POST', `/agents/${bot.id}/revoke`)
      t.match(await ofAgent.closed(), /hellomore$/)
      const other = await gateway.agent({ policyName: 'some' })
      const denied = await openSocket(t, other.token)
      await gateway.manage('PUT', '/policies/some', { name: 'some', default: 'Deny' })
      t.match(await denied.closed(), /hello$/)
      await eventually(
        () => open.size,
        size => size === 0,
      )
    })
  })
}
