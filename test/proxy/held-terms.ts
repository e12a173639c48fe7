/** A held request has the terms of the rule that holds it for its body, whatever the head alone would say. */

import t, { type Test } from 'tap'
import { requestFromDescription } from '../../src/policy/request/describe.ts'
import { naiveVerdict } from '../fixtures/naive-policy.ts'
import { bodies, createRandom, pick, randomBodyPolicy } from '../fixtures/random-policy.ts'
import { type Review, startReview } from '../fixtures/review.ts'
import { policyOf } from '../fixtures/rulebook.ts'
import { runs } from '../fixtures/runs.ts'

const json = { 'Content-Type': 'application/json' }
const large = { field: 'input.body.amount', operator: 'gt', value: '100' }
const two = { name: 'two', priority: 9, effect: 'Hitl', approvals: 2, reason: 'Large sums', conditions: [large] }

/** A bot with a policy of its own. */
async function botWith(review: Review, document: object) {
  const policyName = await review.policy({ name: 'terms', ...document })
  return review.agent({ policyName })
}

const itemOf = async (review: Review, id: string) => (await review.call('GET', `/hitl/${id}`)).json()

/** Whether two approvals send the request, and one does not. */
async function needsTwo(t: Test, review: Review, id: string) {
  const { origin, approve, newReviewer } = review
  const before = origin.seen.length
  t.match(await itemOf(review, id), { pending: { rule: 'two', ruleReason: 'Large sums', approvalsNeeded: 2 } })
  t.equal((await approve(id)).status, 202)
  t.equal(origin.seen.length, before)
  t.equal((await approve(id, {}, (await newReviewer()).token)).status, 200)
  t.equal(origin.seen.length, before + 1)
}

const others = [
  { what: 'the default holds all other bodies', default: 'Hitl', rules: [two] },
  {
    what: 'another rule holds all other bodies',
    rules: [
      two,
      { name: 'posts', effect: 'Hitl', conditions: [{ field: 'input.method', operator: 'eq', value: 'POST' }] },
    ],
  },
]

for (const { what, ...document } of others) {
  t.test(`two approvals are needed where ${what}`, async t => {
    const review = await startReview(t)
    const bot = await botWith(review, document)
    await needsTwo(t, review, await review.hold('/refunds', { bot, headers: json, body: '{"amount":250}' }))
    const small = await review.hold('/refunds', { bot, headers: json, body: '{"amount":5}' })
    t.match(await itemOf(review, small), { pending: { approvalsNeeded: 1 } })
    t.equal((await review.approve(small)).status, 200)
  })
}

t.test('a guardrail does not lower the approvals that the policy of the agent asks for', async t => {
  const guard = { name: 'guard', default: 'Allow', rules: [{ name: 'writes', effect: 'Hitl', conditions: [] }] }
  const review = await startReview(t, { config: { Policy: { Global: 'guard' }, Policies: [guard] } })
  const bot = await botWith(review, { default: 'Allow', rules: [two] })
  const id = await review.hold('/refunds', { bot, headers: json, body: '{"amount":250}' })
  t.match(await itemOf(review, id), {
    pending: { rule: 'writes', approvalsNeeded: 2, reason: /rule "two".*2 approvals/ },
  })
  t.equal((await review.approve(id)).status, 202)
})

t.test('the wait and its end are those of the rule that matches the body', async t => {
  const review = await startReview(t)
  const refused = { ...two, approvals: 1, waitSeconds: 0, whenUndecided: 'refused' }
  const bot = await botWith(review, { default: 'Hitl', rules: [refused] })
  const post = (body: string) =>
    review.proxy(bot.token, `${review.origin.url}/refunds`, { method: 'POST', headers: json, body })
  t.equal((await post('{"amount":250}')).status, 503)
  t.equal((await post('{"amount":5}')).status, 202)
})

for (const threads of [1, 2]) {
  t.test(
    `random policies and bodies have the effect and terms of a plain evaluation, with ${threads} of threads`,
    async t => {
      const review = await startReview(t, { config: { System: { Server: { Threads: threads } } } })
      const seed = Math.floor(Math.random() * 2 ** 32)
      const random = createRandom(seed)
      let held = 0
      for (let count = 0; count < runs(160); count++) {
        const document = { ...randomBodyPolicy(random), name: `random-${count}` }
        const own = policyOf(document)
        const bot = await botWith(review, document)
        for (let each = 0; each < 4; each++) {
          const body = JSON.stringify(pick(random, bodies))
          const request = { method: 'POST', url: `${review.origin.url}/x`, headers: json, body }
          const described = requestFromDescription({ request }, 0)
          if ('problem' in described) throw new TypeError(described.problem)
          const { effect, policy: _, ...terms } = naiveVerdict({ own, guardrail: undefined, isRisky: false }, described)
          const answer = await review.proxy(bot.token, request.url, { method: 'POST', headers: json, body })
          const hitlId = answer.headers.get('gateway-hitl-id') ?? /"hitlId":"([^"]+)"/.exec(await answer.text())?.[1]
          const found = hitlId !== undefined ? 'Hitl' : answer.status === 403 ? 'Deny' : `Allow ${answer.status}`
          t.equal(found.replace(' 200', ''), effect, JSON.stringify({ seed, document, body }))
          if (hitlId === undefined || effect !== 'Hitl') continue
          held++
          const { approvals, waitSeconds, whenUndecided, ...shown } = terms
          const { pending } = (await itemOf(review, hitlId)) as { pending: object }
          t.match(pending, { ...shown, approvalsNeeded: approvals }, JSON.stringify({ seed, document, body }))
          const isRefused = whenUndecided === 'refused'
          t.equal(answer.status, isRefused ? 503 : 202, JSON.stringify({ waitSeconds, seed }))
          await review.deny(hitlId)
        }
      }
      t.ok(held > 0, `held: ${held}`)
    },
  )
}
