/** Heads that are written from memory are the same at each entrypoint, but for what differs between them. */
import t from 'tap'
import { openSecure, secureSetup, startForward } from '../fixtures/forward.ts'
import { merge } from '../fixtures/gateway.ts'
import { startSecureOrigin } from '../fixtures/origin.ts'
import { openRaw, type RawClient } from '../fixtures/raw.ts'

const origin = await startSecureOrigin(t, (req, res) => {
  res.sendDate = false
  res.writeHead(req.url === '/407' ? 407 : 200, ['Content-Length', '2']).end('ok')
})
const to = `idp.test:${origin.port}`
const config = { System: { Server: { KeepAliveSeconds: 20 } }, ForwardProxy: { KeepAliveSeconds: 30 } }
const gateway = await startForward(t, { ...secureSetup, config: merge(secureSetup.config ?? {}, config) })
const { token } = await gateway.agent()
const authorization = `Bearer ${token}`

/** Asks four times, one after the other: the second head is noted, and later ones are written from memory. */
async function ask({ write, until }: RawClient, head: string): Promise<string[]> {
  for (let count = 1; count <= 4; count++) {
    write(`${head}\r\n\r\n`)
    await until(new RegExp(`^(?:.*?\r\n\r\nok){${count}}$`, 's'))
  }
  return (await until(/ok$/)).split('\r\n\r\nok').slice(0, -1)
}

const underProxy = async (path: string) =>
  ask(
    await openRaw(t, gateway.port),
    `GET /proxy/${origin.url}${path} HTTP/1.1\r\nHost: g\r\nGateway-Authorization: ${authorization}`,
  )
const inTunnel = async () => ask(await openSecure(t, gateway, { to, authorization }), `GET / HTTP/1.1\r\nHost: ${to}`)
const inAbsoluteForm = async (path: string) =>
  ask(
    await gateway.open(t),
    `GET ${origin.url}${path} HTTP/1.1\r\nHost: ${to}\r\nProxy-Authorization: ${authorization}`,
  )
const withoutId = (head: string) => head.replace(/(?<=\r\nGateway-Request-Id: )\S+/, 'id')

t.test('each entrypoint says for how long it keeps the connection', async t => {
  const upstream =
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nGateway-Request-Id: id\r\nConnection: keep-alive\r\nKeep-Alive: timeout='
  for (const head of await underProxy('/')) t.equal(withoutId(head), `${upstream}20`)
  for (const head of await inTunnel()) t.equal(withoutId(head), `${upstream}30`)
  for (const head of await underProxy('/')) t.equal(withoutId(head), `${upstream}20`)
  t.equal(origin.connections(), 1, 'all on the connection that remembers')
})

t.test('407 is remembered at none: the forward proxy makes it 502', async t => {
  for (const head of await underProxy('/407')) t.match(head, /^HTTP\/1\.1 407 /)
  for (const head of await inAbsoluteForm('/407'))
    t.match(head, /^HTTP\/1\.1 502 .*\r\nGateway-Upstream-Status: 407\r\n/s)
  t.equal(origin.connections(), 1, 'all on the connection that remembers')
})
