/** An approved request leaves while its attempt is the only one that may send it, and at no other time. */

import { createClock } from '../fixtures/clock.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { startReview } from '../fixtures/review.ts'
import t from '../fixtures/tap.ts'

const config = { HumanInTheLoop: { LeaseSeconds: 660 } }

t.test('an approved request whose name is found after the lease is not sent', async t => {
  const clock = createClock(Date.now())
  let late = false
  const lookup = async () => {
    if (late) clock.advance(660_000)
    return ['127.0.0.1']
  }
  const review = await startReview(t, { clock, config, lookup })
  const { origin, approve } = review
  const held = await review.proxy(review.bot.token, `http://up.example:${origin.port}/`, { method: 'POST', body: 'x' })
  t.equal(held.status, 202)
  const id = (held.headers.get('location') ?? '').split('/').at(-1) as string
  // The first answer of the resolver is not used any more.
  clock.advance(31_000)
  late = true
  const approved = await approve(id)
  t.match(await approved.json(), { status: 504, code: 'upstream_timeout' })
  t.equal(origin.seen.length, 0)
  late = false
  clock.advance(31_000)
  const again = await approve(id)
  t.equal(again.status, 200, await again.text())
  t.equal(origin.seen.length, 1)
})

t.test('an approved request has a limit of interim answers', async t => {
  const server = await startRawServer(t, socket => {
    socket.once('data', () => socket.end(`${'HTTP/1.1 103 x\r\n\r\n'.repeat(100)}HTTP/1.1 200 OK\r\n\r\nnever`))
  })
  const review = await startReview(t, { config })
  const held = await review.proxy(review.bot.token, `${server.url}/`, { method: 'POST', body: 'x' })
  const id = (held.headers.get('location') ?? '').split('/').at(-1) as string
  t.match(await (await review.approve(id)).json(), { status: 502, code: 'upstream_failed' })
})
