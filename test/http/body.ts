import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { Refusal } from '../../src/base/refusals.ts'
import { readBody } from '../../src/http/body.ts'
import { openRaw } from '../fixtures/raw.ts'

/** What reading the body of each request gives, in order. */
async function serve(t: Test, limit: number) {
  const read: ReturnType<typeof Promise.withResolvers<Buffer | Refusal>>[] = [Promise.withResolvers()]
  const server = createServer(async (req, res) => {
    const outcome = await readBody(req, limit)
    read.at(-1)!.resolve(outcome)
    res.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const client = await openRaw(t, (server.address() as AddressInfo).port)
  return { client, outcome: () => read[0]!.promise }
}

const head = 'POST / HTTP/1.1\r\nHost: x\r\n'

t.test('a body is read whole, however it comes in pieces', async t => {
  const { client, outcome } = await serve(t, 10)
  client.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`)
  client.write('5\r\nworld\r\n')
  client.write('0\r\n\r\n')
  t.equal(String(await outcome()), 'helloworld')
})

t.test('no body is empty', async t => {
  const { client, outcome } = await serve(t, 10)
  client.write(`${head}\r\n`)
  t.equal(((await outcome()) as Buffer).length, 0)
})

t.test('a body that is announced as too large is refused before it comes', async t => {
  const { client, outcome } = await serve(t, 10)
  client.write(`${head}Content-Length: 11\r\n\r\n`)
  t.match(await outcome(), { refusal: 'body_too_large', status: 413 })
})

t.test('a body that turns out too large is refused as soon as it is', async t => {
  const { client, outcome } = await serve(t, 10)
  client.write(`${head}Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n`)
  t.match(await outcome(), { refusal: 'body_too_large', status: 413 })
})

t.test('a sender that goes away is no body', async t => {
  const { client, outcome } = await serve(t, 10)
  client.write(`${head}Content-Length: 5\r\n\r\nhel`)
  client.socket.destroy()
  t.match(await outcome(), { refusal: 'invalid_request' })
})
