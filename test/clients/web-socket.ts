/** WebSocket clients through the gateway, and programs that try a WebSocket first and go on over HTTP. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import WebSocket, { WebSocketServer } from 'ws'
import { startGateway } from '../fixtures/gateway.ts'

/** Says everything back, and answers POST. */
async function startEcho(t: Test) {
  const posted: string[] = []
  const authorizations: (string | undefined)[] = []
  const http = createServer((req, res) => {
    posted.push(req.url ?? '')
    req.resume().on('end', () => res.end('over HTTP'))
  })
  const server = new WebSocketServer({ server: http, handleProtocols: () => 'chat', perMessageDeflate: true })
  server.on('connection', (socket, { headers }) => {
    authorizations.push(headers.authorization)
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    http.closeAllConnections()
    http.close()
  })
  return { origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, posted, authorizations }
}

const echo = await startEcho(t)
const gateway = await startGateway(t, { config: { Proxy: { AllowUpgrade: ['127.0.0.1'] } } })
const { token } = await gateway.agent()

const open = (bearer = token, by = gateway) =>
  new WebSocket(`ws://127.0.0.1:${by.port}/proxy/${echo.origin}/realtime`, ['chat'], {
    headers: { 'Gateway-Authorization': `Bearer ${bearer}` },
  })

t.test('messages of every size go both ways, compressed or not, and the closing handshake too', async t => {
  const socket = open()
  await once(socket, 'open')
  t.equal(socket.protocol, 'chat')
  t.match(socket.extensions, /permessage-deflate/)
  for (const size of [0, 1, 125, 126, 70_000, 3_000_000]) {
    socket.send(Buffer.alloc(size, 'x'))
    const [data] = await once(socket, 'message')
    t.equal(data.length, size)
  }
  socket.ping('hi')
  t.equal(String((await once(socket, 'pong'))[0]), 'hi')
  socket.close(4_001, 'done')
  const [code, reason] = await once(socket, 'close')
  t.match([code, String(reason)], [4_001, 'done'])
  const [line] = await gateway.exchanges(1)
  t.match(line, { status: 101, ending: 'forwarded', method: 'GET', path: '/realtime' })
  t.ok(Number(line?.['bytesOut']) > 1_000)
})

t.test('a virtual host opens a WebSocket with the token where the client has its key', async t => {
  const config = {
    Hosts: [{ Host: 'echo.gateway.internal', Upstream: echo.origin }],
    Proxy: { AllowUpgrade: ['127.0.0.1'] },
  }
  const hosted = await startGateway(t, { config })
  const bot = await hosted.agent()
  const headers = { Host: 'echo.gateway.internal', Authorization: `Bearer ${bot.token}` }
  const socket = new WebSocket(`ws://127.0.0.1:${hosted.port}/realtime`, ['chat'], { headers })
  await once(socket, 'open')
  socket.send('hello')
  t.equal(String((await once(socket, 'message'))[0]), 'hello')
  t.equal(echo.authorizations.at(-1), undefined)
  socket.close()
  await once(socket, 'close')
})

t.test('a client that may use HTTP as well goes on over it: as Codex does with its responses', async t => {
  for (const config of [{}, { Proxy: { AllowUpgrade: ['other.example'] } }]) {
    const closed = await startGateway(t, { config })
    const bot = await closed.agent()
    const socket = open(bot.token, closed)
    const [, answer] = await once(socket, 'unexpected-response')
    t.match([answer.statusCode, answer.headers['gateway-error']], [426, 'websocket_not_supported'])
    const target = `${echo.origin}/responses`
    t.equal(await (await closed.proxy(bot.token, target, { method: 'POST', body: '{}' })).text(), 'over HTTP')
  }
  t.strictSame(echo.posted, ['/responses', '/responses'])
})
