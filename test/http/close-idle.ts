/** Threat T32 of SECURITY.md. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { followConnections } from '../../src/http/follow-connections.ts'
import { openRaw } from '../fixtures/raw.ts'

t.test('a connection on which nothing moves is closed; one that is used is not, however slowly', async t => {
  const large = Buffer.alloc(8_388_608)
  const server = createServer((req, res) => {
    if (req.url === '/large') res.end(large)
    else {
      const timer = setInterval(() => res.write('.'), 50)
      res.on('close', () => clearInterval(timer))
    }
  })
  const closed = new Map<string, Promise<unknown>>()
  server.on('request', ({ url = '' }, res) => closed.set(url, closed.get(url) ?? once(res.socket!, 'close')))
  followConnections(server, 400)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo

  const slow = await openRaw(t, port)
  slow.write('GET / HTTP/1.1\r\nHost: g\r\n\r\n')
  const taker = await openRaw(t, port)
  taker.socket.pause()
  taker.write('GET /large HTTP/1.1\r\nHost: g\r\n\r\n'.repeat(3))
  const silent = await openRaw(t, port)
  t.equal(await silent.closed(), '')
  await closed.get('/large')
  taker.socket.resume()
  t.ok((await taker.closed()).length < large.length, 'it took too little for too long')
  await slow.until(/(?:1\r\n\.\r\n){12}/)
  t.notOk(slow.socket.readableEnded)
  slow.socket.destroy()
})
