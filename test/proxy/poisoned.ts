/** Threat T21 of SECURITY.md. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startRawServer } from '../fixtures/raw.ts'

const answerOf = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`

t.test('an answer that nobody asked for never becomes the answer to the next request', async t => {
  let served = 0
  // Each connection answers its first request twice; only the second answer is poison.
  const server = await startRawServer(t, socket => {
    socket.on('data', data => {
      for (const [, path] of data.toString('latin1').matchAll(/^GET (\S+) /gm)) {
        served += 1
        socket.write(answerOf(`for ${path}`))
        setTimeout(() => socket.write(answerOf('poison')), 2)
      }
    })
  })
  // Only the thread whose event loop is busy is of interest here, and that is this one.
  const config = { System: { Server: { Threads: 1 }, RateLimit: { Burst: 10_000, MaxInFlight: 1_000 } } }
  const gateway = await startGateway(t, { config })
  const { token } = await gateway.agent()
  for (let i = 0; i < 60; i++) {
    const answer = await gateway.proxy(token, `${server.url}/${i}`)
    t.equal(await answer.text(), `for /${i}`)
    // The event loop is busy while the poison arrives, so that it is not read before the next request is taken.
    const end = performance.now() + 20
    while (performance.now() < end);
  }
  t.equal(served, 60)
})

t.test('answers of two agents that share an upstream are never mixed up under load', async t => {
  const server = await startRawServer(t, socket => {
    socket.on('data', data => {
      for (const [, path] of data.toString('latin1').matchAll(/^GET (\S+) /gm)) socket.write(answerOf(`for ${path}`))
    })
  })
  const gateway = await startGateway(t, { config: { System: { RateLimit: { Burst: 10_000, MaxInFlight: 1_000 } } } })
  const agents = [await gateway.agent(), await gateway.agent()]
  const calls = Array.from({ length: 400 }, async (_, i) => {
    const answer = await gateway.proxy(agents[i % 2]!.token, `${server.url}/${i}`)
    return (await answer.text()) === `for /${i}`
  })
  t.ok((await Promise.all(calls)).every(Boolean))
})
