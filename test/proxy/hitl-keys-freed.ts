/** Threat T06 of SECURITY.md. */

import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

t.test('a key is free again when the request got no connection: its client left, or too many wait', async t => {
  const { promise: slow, resolve: releaseSlow } = Promise.withResolvers<void>()
  const review = await startReview(t, {
    alone: 'each gateway has a line of requests that wait for a connection',
    config: {
      // The key is asked for until it is free, every millisecond.
      System: { RateLimit: { RequestsPerMinute: 100_000, Burst: 10_000 }, Server: { Threads: 1 } },
      Proxy: { MaxConnectionsPerOrigin: 1, MaxWaiting: 2 },
    },
    answer: (req, res) => {
      if (req.url === '/slow') void slow.then(() => res.end('slow'))
      else res.end('hello from upstream')
    },
  })
  const { bot, origin, proxy, call } = review
  const post = async (path: string, init: RequestInit = {}) => {
    const headers = { 'Idempotency-Key': path }
    const answer = await proxy(bot.token, origin.url + path, { method: 'POST', ...init, headers })
    await answer.text()
    return { status: answer.status, code: answer.headers.get('gateway-error') }
  }
  const grant = { minutes: 10, maxUses: 100, path: '/**' }
  await (await review.approve(await review.hold('/first'), { grant })).body?.cancel()
  const used = async () => ((await (await call('GET', '/hitl/grants')).json()) as { uses: number }[])[0]?.uses
  const other = await review.agent()
  const occupied = proxy(other.token, `${origin.url}/slow`)
  await eventually(
    () => origin.seen.filter(({ target }) => target === '/slow').length,
    count => count === 1,
  )
  const leaving = new AbortController()
  const left = post('/left', { signal: leaving.signal })
  // It waits for a connection at once when the grant was used.
  await eventually(used, uses => uses === 1)
  t.match(await post('/busy'), { status: 503, code: 'upstream_busy' })
  leaving.abort()
  await t.rejects(left)
  const inFlight = (count: number) => eventually(review.gateway.inFlight, now => now === count)
  await inFlight(1)
  releaseSlow()
  await (await occupied).body?.cancel()
  await inFlight(0)
  for (const path of ['/left', '/busy']) {
    const { status } = await eventually(
      () => post(path),
      answer => answer.status === 200,
    )
    t.equal(status, 200, path)
    t.equal((await post(path)).status, 409, path)
  }
})
