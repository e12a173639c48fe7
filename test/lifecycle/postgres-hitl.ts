/** Held requests over two gateways on one schema: it does not matter which of them a call, a verdict or a reader reaches. */

import t, { type Test } from 'tap'
import { turnMs } from '../../src/storage/postgres/feed.ts'
import { eventually, onDatabase } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { type Review, type ReviewSetup, startReview } from '../fixtures/review.ts'
import { readEvents } from '../fixtures/sse.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

async function two(t: Test, { answer }: Pick<ReviewSetup, 'answer'> = {}) {
  const origin = await startOrigin(t, answer)
  const settings = await createSchema(t)
  const config = onDatabase(settings)
  // Two agents take all connections: threads would divide them.
  const few = { Proxy: { MaxConnectionsPerOrigin: 2 }, System: { Server: { Threads: 1 } } }
  const a = await startReview(t, { config: { ...config, ...few }, origin })
  const b = await startReview(t, { config, origin })
  /** Gateways, and calls that can be cancelled, that wait for a request. */
  const callsOf = async (id: string): Promise<readonly string[]> => {
    const { rows } = await settings.admin.query<{ calls: string }>('select calls from hitl where id = $1', [id])
    return JSON.parse(rows[0]?.calls ?? '[]')
  }
  const waitedFor = (id: string, count: number) =>
    eventually(
      () => callsOf(id),
      ({ length }) => length === count,
    )
  return { a, b, origin, waitedFor }
}

/** A call of the agent of `by` that waits, through the gateway `via`. */
function waits(via: Review, by: Review, path: string, signal?: AbortSignal): Promise<Response> {
  const headers = { Prefer: 'wait=50' }
  return via.proxy(by.bot.token, via.origin.url + path, { method: 'POST', headers, ...(signal && { signal }) })
}

const statusOf = async (review: Review, id: string) =>
  ((await (await review.call('GET', `/hitl/${id}`)).json()) as { status: string }).status

const listen = (t: Test, { url, reviewer }: Review, lastId?: string) =>
  readEvents(t, `${url}/hitl/events`, {
    Authorization: `Bearer ${reviewer.token}`,
    ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
  })

/** Gateways that are started by `start` look at the database only after own commits, and when another one wakes them. */
async function withoutTurns<T>(start: () => Promise<T>): Promise<T> {
  const { setInterval } = globalThis
  const never = 2 ** 31 - 1
  const patched = (work: () => void, ms?: number) => setInterval(work, ms === turnMs ? never : ms)
  globalThis.setInterval = Object.assign(patched, setInterval)
  try {
    return await start()
  } finally {
    globalThis.setInterval = setInterval
  }
}

t.test('a verdict in one gateway wakes the other, where the call waits', async t => {
  const { a, b } = await withoutTurns(() => two(t))
  const answer = waits(a, a, '/')
  const [item] = await b.waiting(a.bot, 1)
  t.equal((await b.deny(item!.id)).status, 200)
  t.equal((await answer).status, 403)
})

t.test('a request is withdrawn when the last call for it leaves, in whichever gateway', async t => {
  const { a, b, waitedFor } = await two(t)
  const [first, second] = [new AbortController(), new AbortController()]
  const left = [t.rejects(waits(a, a, '/same', first.signal))]
  const [item] = await b.waiting(a.bot, 1)
  const { id } = item!
  left.push(t.rejects(waits(b, a, '/same', second.signal)))
  await waitedFor(id, 2)
  first.abort()
  await waitedFor(id, 1)
  t.equal(await statusOf(a, id), 'Pending')
  second.abort()
  t.equal(
    await eventually(
      () => statusOf(a, id),
      found => found !== 'Pending',
    ),
    'Withdrawn',
  )
  await Promise.all(left)
})

t.test('notifications/cancelled at one gateway cancels the call that waits in the other', async t => {
  const { a, b, origin } = await two(t)
  const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
  const send = (via: Review, body: object) =>
    via.proxy(a.bot.token, `${origin.url}/mcp`, { method: 'POST', headers, body: JSON.stringify(body) })
  const call = await send(a, { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' } })
  const [item] = await b.waiting(a.bot, 1)
  const params = { requestId: 7 }
  const cancelled = await send(b, { jsonrpc: '2.0', method: 'notifications/cancelled', params })
  t.match([cancelled.status, cancelled.headers.get('gateway-hitl-id')], [202, null])
  t.notMatch(await call.text(), 'data:', 'a cancelled call has no answer')
  t.equal(await statusOf(b, item!.id), 'Withdrawn')
  t.equal(origin.seen.length, 0)
})

t.test('a reader goes on at another gateway, with the id of its last event', async t => {
  const { a, b } = await two(t)
  const first = await listen(t, a)
  const one = await a.hold('/1')
  t.match(await first.next(), { event: 'pending', data: { hitlId: one, data: { agentName: 'tester' } } })
  await first.close()
  const other = await b.hold('/2')
  await b.deny(one)
  for (const review of [b, a]) {
    const again = await listen(t, review, first.lastId())
    t.match(await again.next(), { event: 'pending', data: { hitlId: other } })
    t.match(await again.next(), { event: 'denied', data: { hitlId: one, data: { byName: 'tester' } } })
  }
  t.match(await (await listen(t, b, 'another-1')).next(), { event: 'reset' })
})

t.test('what a grant let pass in one gateway waits while the other withdraws it: it is held again', async t => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { a, b, origin } = await two(t, {
    answer: (req, res) => void (req.url === '/slow' ? promise : Promise.resolve()).then(() => res.end('ok')),
  })
  const granted = (via: Review) => via.proxy(a.bot.token, `${origin.url}/granted`, { method: 'POST' })
  const approved = await b.approve(await b.hold('/granted', { bot: a.bot }), { grant: { minutes: 5, maxUses: 100 } })
  const grant = approved.headers.get('gateway-hitl-grant')
  await approved.text()
  const slow = [await a.newBot(), await a.newBot()].map(({ token }) => a.proxy(token, `${origin.url}/slow`))
  await eventually(
    () => origin.seen.filter(({ target }) => target === '/slow').length,
    count => count === 2,
  )
  const answer = granted(a)
  await eventually(
    async () => JSON.parse((await a.manage('GET', `/audit?subject=${grant}`)).text).items.length,
    entries => entries === 2,
  )
  t.equal((await b.call('DELETE', `/hitl/grants/${grant}`)).status, 200)
  resolve()
  t.equal((await answer).status, 202)
  t.equal(origin.seen.filter(({ target }) => target === '/granted').length, 1)
  await Promise.all(slow)
})

t.test('behind a fence event streams end, and a call that waits gets 202 at the end of its time', async t => {
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const config = { ...onDatabase({ ...settings, connectionString: url.href }), Fleet: { FenceAfterSeconds: 4 } }
  const cut = await startReview(t, { config })
  const events = await listen(t, cut)
  const answer = cut.proxy(cut.bot.token, `${cut.origin.url}/x`, { method: 'POST', headers: { Prefer: 'wait=8' } })
  t.match(await events.next(), { event: 'pending' })
  line.onSend = () => false
  line.answers = false
  t.equal(await events.next(), undefined)
  t.equal((await answer).status, 202)
  line.onSend = () => true
  line.answers = true
  line.cut()
})
