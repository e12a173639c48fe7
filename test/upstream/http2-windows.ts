/** What one agent does not read takes nothing from others: Node gives the window of a connection back as data comes. */
import { readFileSync } from 'node:fs'
import type { ServerHttp2Stream } from 'node:http2'
import t from 'tap'
import { parseHostPatterns } from '../../src/base/host.ts'
import { eventually } from '../fixtures/gateway.ts'
import { certFile, startHttp2 } from '../fixtures/origin-http2.ts'
import { ask, openConnections, Told } from '../fixtures/upstream.ts'

/** That of a connection, and four times that of a stream. */
const body = Buffer.alloc(1_048_576, 'x')
const streams: ServerHttp2Stream[] = []
const upstream = await startHttp2(
  t,
  stream => {
    streams.push(stream)
    stream.respond({ ':status': 200 })
    stream.end(body)
  },
  { maxSessionMemory: 100 },
)
const connections = openConnections(t, {
  http2Hosts: parseHostPatterns(['idp.test']),
  ca: readFileSync(certFile, 'utf8'),
})
const port = Number(new URL(upstream.url).port)
const get = (told = new Told()) => ask(connections, port, { scheme: 'https', host: 'idp.test', told })

t.test('answers that nobody reads keep no other answer from coming over their connection', async t => {
  await get().over
  const unread = Array.from({ length: 8 }, () => get(new Told({ head: ({ control }) => control?.pause() })))
  await eventually(
    () => unread.filter(({ head }) => head !== undefined).length,
    count => count === unread.length,
  )
  const read = await get().over
  t.equal(read.text.length, body.length)
  t.strictSame(upstream.connections, { h2: 1, http1: 0 })
  t.notOk(
    streams.slice(1, -1).some(({ closed }) => closed),
    'each of them stops at its own window',
  )
  for (const { control } of unread) control?.resume()
  for (const { over } of unread) t.equal((await over).text.length, body.length)
})
