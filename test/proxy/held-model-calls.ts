/** SDKs of model providers take 202 for the answer: their calls wait and then get 503, unless someone says otherwise. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { startReview } from '../fixtures/review.ts'

const review = await startReview(t)
const { origin, proxy, waiting, approve } = review
const agentOf = async (document: object) =>
  review.agent({ policyName: await review.policy({ name: `models-${randomUUID()}`, ...document }) })
const ruleWith = (terms: object) => ({ rules: [{ name: 'hold', effect: 'Hitl', conditions: [], ...terms }] })

const shipped = await agentOf({ default: 'Hitl', rules: [] })
const brief = await agentOf(ruleWith({ waitSeconds: 1 }))
const atOnce = await agentOf(ruleWith({ waitSeconds: 0 }))
const post = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"model":"m"}' }
const paths = ['/v1/chat/completions', '/v1/messages', '/v1beta/models/m:generateContent', '/api/chat']

for (const path of paths) {
  t.test(`a call of ${path} waits for the verdict, with nothing set`, async t => {
    const answer = proxy(shipped.token, `${origin.url}${path}`, post)
    const [item] = await waiting(shipped, 1)
    await (await approve(item!.id)).text()
    t.equal((await answer).status, 200)
  })

  t.test(`a call of ${path} that nobody decides gets 503`, async t => {
    const answer = await proxy(brief.token, `${origin.url}${path}`, post)
    t.equal(answer.status, 503)
    t.equal(answer.headers.get('retry-after'), '5')
    t.equal(answer.headers.get('gateway-error'), 'review_pending')
  })
}

const others = [
  ['a rule says that it does not wait', atOnce, paths[0], post],
  ['its client says that it does not wait', shipped, paths[0], { ...post, headers: { Prefer: 'respond-async' } }],
  ['its client says how long', shipped, paths[1], { ...post, headers: { Prefer: 'wait=1' } }],
  ['it is of another API', shipped, '/v1/orders', post],
  ['it does not ask a model', shipped, paths[0], { method: 'DELETE' }],
] as const

for (const [why, { token }, path, init] of others) {
  t.test(`a held call gets 202 where ${why}`, async t => {
    t.equal((await proxy(token, `${origin.url}${path}`, init)).status, 202)
  })
}
