/** In HTTP/1.0 the end of the connection is the end of the body: an answer that broke off looked like a whole one. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

t.test('an answer that breaks off resets the connection of a client that speaks HTTP/1.0', async t => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const server = await startRawServer(t, socket => {
    socket.once('data', () => {
      socket.write(`${head}5\r\nbegun\r\n`)
      socket.once('data', () => {})
      setTimeout(() => socket.destroy(), 50)
    })
  })
  const gateway = await startGateway(t)
  const { token } = await gateway.agent()
  const client = await openRaw(t, gateway.port)
  const ending = new Promise<string>(resolve => {
    client.socket
      .once('error', error => resolve((error as NodeJS.ErrnoException).code ?? ''))
      .once('end', () => resolve('end'))
  })
  client.write(`GET /proxy/${server.url}/ HTTP/1.0\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`)
  await client.until(/begun/)
  t.equal(await ending, 'ECONNRESET')
})
