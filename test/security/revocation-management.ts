/**
 * Threat T15 of SECURITY.md: every place where a call of the management API waits, times every way to lose the right to
 * go on. After the change was answered nothing counts, nothing is told and nothing leaves.
 */

import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import type { TestAgent } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'
import { type Review, startReview } from '../fixtures/review.ts'
import { readEvents } from '../fixtures/sse.ts'
import { followWaits } from '../fixtures/waits.ts'

interface Way {
  readonly take: (review: Review, who: TestAgent) => Promise<{ readonly status: number }>
  readonly outcome: string
}

const action = (name: string, code: string): Way => ({
  take: ({ manage }, { id }) => manage('POST', `/agents/${id}/${name}`),
  outcome: `403 ${code}`,
})

const ways: Readonly<Record<string, Way>> = {
  revoked: action('revoke', 'agent_revoked'),
  quarantined: action('quarantine', 'agent_quarantined'),
  deactivated: action('deactivate', 'agent_inactive'),
  deleted: { take: ({ manage }, { id }) => manage('DELETE', `/agents/${id}`), outcome: '401 unauthenticated' },
  'without the role': {
    take: ({ manage }, { id }) => manage('PUT', `/agents/${id}/roles`, { roles: ['agent'] }),
    outcome: '403 forbidden',
  },
}

/** Cells that do not apply, with the reason. */
const none: Readonly<Record<string, string>> = {
  'without the role, verdict': 'the agent whose request is held needs no role for it',
  // The right of the agent's own token to be answered ends with it; its held request is decided by policy when approved:
  // test/proxy/hitl-decided-again.ts. That a reviewer may still vote is asked at the claim too: test/hitl/verdicts.ts.
}

const outcomeOf = ({ status, headers }: Response) => `${status} ${headers.get('gateway-error')}`

/** The same of the head of an answer. */
const outcomeIn = (head: string) => `${head.slice(9, 12)} ${/^gateway-error: (.*)$/im.exec(head)?.[1]?.trim()}`

type Cell = (t: Test, review: Review, way: Way) => Promise<unknown>

const places: Readonly<Record<string, Cell>> = {
  /** The agent loses its right while its request waits for the verdict. */
  async verdict(t, review, { take, outcome }) {
    const bot = await review.newBot()
    const id = await review.hold('/held', { bot })
    t.equal((await take(review, bot)).status, 200)
    t.equal(outcomeOf(await review.approve(id)), outcome)
  },
  /** A reviewer loses the right after the first of two votes. */
  async 'second vote'(t, review, { take }) {
    const [first, second, third] = await Promise.all([review.newReviewer(), review.newReviewer(), review.newReviewer()])
    const id = await review.hold('/held', { method: 'PUT' })
    t.equal((await review.approve(id, {}, first.token)).status, 202)
    t.equal((await take(review, first)).status, 200)
    const counted = await review.approve(id, {}, second.token)
    t.match(await counted.json(), { approvals: 1, approvalsNeeded: 2 }, 'the first vote counts no more')
    t.equal(review.origin.seen.length, 0)
    t.equal((await review.approve(id, {}, third.token)).status, 200)
    review.origin.seen.length = 0
  },
  /** The body of an approval comes slowly. */
  async 'body of the call'(t, review, { take, outcome }) {
    const reviewer = await review.newReviewer()
    const id = await review.hold('/held')
    const raw = await openRaw(t, review.port)
    raw.write(`POST /hitl/${id}/approve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reviewer.token}\r\n`)
    raw.write('Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n')
    // It is let in before it is asked for its body.
    t.match(await raw.until(/\r\n\r\n/), /^HTTP\/1\.1 100 /)
    raw.write('{')
    t.equal((await take(review, reviewer)).status, 200)
    raw.write('}')
    const [, answer = ''] = (await raw.until(/\r\n\r\n.+\r\n\r\n/s)).split('\r\n\r\n')
    t.equal(outcomeIn(answer), outcome)
  },
  async 'stream of events'(t, review, { take }) {
    const reviewer = await review.newReviewer()
    const events = await readEvents(t, `${review.url}/hitl/events`, { Authorization: `Bearer ${reviewer.token}` })
    await events.block()
    t.equal((await take(review, reviewer)).status, 200)
    await review.hold('/held')
    t.equal(await events.next(), undefined, 'it has ended, and told nothing')
  },
  async 'long status wait'(t, review, { take, outcome }) {
    const reviewer = await review.newReviewer()
    const id = await review.hold('/held')
    const waiting = followWaits(t, 50)
    const raw = await openRaw(t, review.port)
    raw.write(`GET /hitl/status/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reviewer.token}\r\n`)
    raw.write('Prefer: wait=50\r\n\r\n')
    await waiting(1)
    t.equal((await take(review, reviewer)).status, 200)
    t.equal(outcomeIn(await raw.until(/\r\n\r\n/)), outcome)
  },
}

/** The token of a reviewer runs out while its call waits. */
async function expiryCells(t: Test, threads: number): Promise<void> {
  const clock = createClock()
  const config = {
    System: { Server: { Threads: threads, IdleTimeoutSeconds: 36_000 } },
    HumanInTheLoop: { TimeoutSeconds: 86_400 },
  }
  const review = await startReview(t, { clock, config })
  const { call, hold, url, port, adminToken } = review
  const [bot, reviewer] = [await review.newBot(), await review.newReviewer()]
  const events = await readEvents(t, `${url}/hitl/events`, { Authorization: `Bearer ${reviewer.token}` })
  const id = await hold('/held', { bot })
  t.equal((await events.next())?.event, 'pending')
  const status = { token: reviewer.token, headers: { Prefer: 'wait=50' } }
  const waiting = call('GET', `/hitl/status/${id}`, status)
  const raw = await openRaw(t, port)
  raw.write(`POST /hitl/${id}/approve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reviewer.token}\r\n`)
  raw.write('Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{')
  await call('GET', `/hitl/status/${id}`, { token: adminToken })
  clock.advance(3_600_000 * 2)
  raw.write('}')
  t.match(await raw.until(/\r\n\r\n/), /^HTTP\/1\.1 401 /, 'body of the call')
  t.equal(review.origin.seen.length, 0, 'nothing left')
  t.equal((await review.manage('POST', `/hitl/${id}/deny`, {}, (await review.newReviewer()).token)).status, 200)
  t.equal((await waiting).status, 401, 'long status wait')
  t.equal(await events.next(), undefined, 'stream of events: it has ended, and told nothing')
}

for (const threads of [1, 2]) {
  t.test(`${threads} of threads, token expired while a call waits`, async t => expiryCells(t, threads))
  t.test(`${threads} of threads`, async t => {
    const review = await startReview(t, { config: { System: { Server: { Threads: threads } } } })
    for (const [where, cell] of Object.entries(places)) {
      for (const [how, way] of Object.entries(ways)) {
        const reason = none[`${how}, ${where}`]
        if (reason !== undefined) t.comment(`${how} while it waits for: ${where}: does not apply: ${reason}`)
        else {
          t.test(`${how} while it waits for: ${where}`, async t => {
            await cell(t, review, way)
            t.equal(review.origin.seen.length, 0, 'nothing left')
          })
        }
      }
    }
  })
}
