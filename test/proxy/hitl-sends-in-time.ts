/** An approved request leaves while its attempt is the only one that may send it, and at no other time. */

import t from 'tap'
import { createClock, type ManualClock } from '../fixtures/clock.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { startReview } from '../fixtures/review.ts'

const config = { HumanInTheLoop: { LeaseSeconds: 660 } }

type Stop = (clock: ManualClock) => void

/** What the clocks may show after the process, or its machine, stood still between the claim and the sending. */
const stops: readonly [string, Stop][] = [
  ['both clocks', clock => clock.advance(330_000)],
  ['the wall clock of a machine that was paused', clock => clock.jump(330_000)],
  [
    'the steady clock, when the wall clock was set back',
    clock => {
      clock.advance(330_000)
      clock.jump(-600_000)
    },
  ],
]

for (const [which, stop] of stops) {
  t.test(`an approved request is not sent once half of the lease is over by ${which}`, async t => {
    const clock = createClock(Date.now())
    let stopped = false
    const lookup = async () => {
      if (stopped) stop(clock)
      return ['127.0.0.1']
    }
    const review = await startReview(t, { clock, config, lookup, alone: 'the clocks of one gateway jump' })
    const { origin, approve } = review
    const held = await review.proxy(review.bot.token, `http://up.example:${origin.port}/`, {
      method: 'POST',
      body: 'x',
    })
    t.equal(held.status, 202)
    const id = (held.headers.get('location') ?? '').split('/').at(-1) as string
    // The first answer of the resolver is not used any more.
    clock.advance(31_000)
    stopped = true
    const approved = await approve(id)
    t.match(await approved.json(), { status: 504, code: 'upstream_timeout' })
    t.equal(origin.seen.length, 0)
    stopped = false
    clock.advance(31_000)
    const again = await approve(id)
    t.equal(again.status, 200, await again.text())
    t.equal(origin.seen.length, 1)
  })
}

t.test('an approved request has a limit of interim answers', async t => {
  const server = await startRawServer(t, socket => {
    socket.once('data', () => socket.end(`${'HTTP/1.1 103 x\r\n\r\n'.repeat(100)}HTTP/1.1 200 OK\r\n\r\nnever`))
  })
  const review = await startReview(t, { config })
  const held = await review.proxy(review.bot.token, `${server.url}/`, { method: 'POST', body: 'x' })
  const id = (held.headers.get('location') ?? '').split('/').at(-1) as string
  t.match(await (await review.approve(id)).json(), { status: 502, code: 'upstream_failed' })
})
