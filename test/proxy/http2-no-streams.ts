import type { ServerHttp2Stream } from 'node:http2'
import t from 'tap'
import { startHttp2Gateway } from '../fixtures/gateway-http2.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'

const { send } = await startHttp2Gateway(t, { HeadersTimeoutSeconds: 5 })

/** From now on the upstream allows so many streams on this connection. */
const allow = ({ session }: ServerHttp2Stream, maxConcurrentStreams: number) =>
  session?.settings({ maxConcurrentStreams })

function answer(stream: ServerHttp2Stream, text: string): void {
  stream.respond({ ':status': 200 })
  stream.end(text)
}

t.test('an upstream that allows no more streams on a connection gets the next request on another one', async t => {
  const origin = await startHttp2(t, stream => {
    allow(stream, 0)
    answer(stream, 'ok')
  })
  for (const n of [1, 2, 3]) {
    t.equal(await (await send(`${origin.url}/`)).text(), 'ok')
    t.equal(origin.connections.h2, n)
  }
})

for (const streams of [0, 1]) {
  t.test(`a slow request holds up no other on a connection that allows ${streams} from then on`, async t => {
    const slow: ServerHttp2Stream[] = []
    const origin = await startHttp2(t, (stream, _, headers) => {
      if (headers[':path'] !== '/slow') return answer(stream, 'ok')
      slow.push(stream)
      allow(stream, streams)
    })
    const first = send(`${origin.url}/slow`)
    while (slow.length < 1) await new Promise(setImmediate)
    const others = await Promise.all([1, 2, 3].map(async () => (await send(`${origin.url}/`)).text()))
    t.strictSame(others, ['ok', 'ok', 'ok'])
    answer(slow[0]!, 'late')
    t.equal(await (await first).text(), 'late')
  })
}

t.test('an upstream that never allows a stream is answered for in good time', async t => {
  const origin = await startHttp2(t, stream => answer(stream, 'ok'), { settings: { maxConcurrentStreams: 0 } })
  for (const method of ['GET', 'POST']) {
    const { status } = await send(`${origin.url}/`, { method })
    // Which one depends on whether the request or the settings arrive first.
    t.ok(status === 200 || status === 502, `${method} ${status}`)
  }
})
