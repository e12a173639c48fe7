/** Requests with a connection of their own, such as approved ones, to hosts of `Proxy:Http2Hosts`. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseHostPatterns } from '../../src/base/host.ts'
import { createOrigin } from '../../src/base/origin.ts'
import type { UpstreamRequest } from '../../src/upstream/handler.ts'
import { eventually } from '../fixtures/gateway.ts'
import { certFile, startHttp2 } from '../fixtures/origin-http2.ts'
import { openConnections, requestOf, Told } from '../fixtures/upstream.ts'

const upstream = await startHttp2(t)
const connections = openConnections(t, {
  http2Hosts: parseHostPatterns(['idp.test']),
  ca: readFileSync(certFile, 'utf8'),
})

function sendAlone(more: Partial<UpstreamRequest>, told = new Told()): Promise<Told> {
  const resolution = { addresses: ['127.0.0.1'], validUntil: Number.POSITIVE_INFINITY }
  const origin = createOrigin('https', 'idp.test', Number(new URL(upstream.url).port))
  connections.sendAlone(origin, resolution, requestOf(more), told)
  return told.over
}

const allClosed = () =>
  eventually(
    () => connections.size,
    size => size === 0,
  )

t.test('each has a connection of HTTP/2, which closes behind it', async t => {
  const told = await Promise.all([sendAlone({}), sendAlone({ method: 'POST', body: Buffer.from('hello') })])
  for (const { outcome } of told) t.equal(outcome, '200 hello over h2')
  t.strictSame(upstream.connections, { h2: 2, http1: 0 })
  await allClosed()
})

t.test('T15 one whose right to be sent is gone when the connection is open sends nothing', async t => {
  const before = upstream.seen.length
  const gone = new Told({ start: ({ control }) => control?.abort(new Error('the right to send is gone')) })
  t.equal((await sendAlone({ method: 'POST', body: Buffer.from('hello') }, gone)).outcome, 'the right to send is gone')
  await allClosed()
  await sendAlone({})
  t.equal(upstream.seen.length, before + 1)
})

t.test('one that authenticates its connection is sent over HTTP/1.1', async t => {
  t.equal((await sendAlone({ fields: ['Authorization', 'NTLM AAAA'] })).outcome, '200 hello over http/1.1')
})
