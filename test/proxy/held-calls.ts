/** Calls that wait for a person as their rule says: `waitSeconds`, `whenUndecided`, joining and leaving. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

const review = await startReview(t, {
  answer: (req, res) => void req.resume().on('end', () => res.writeHead(201, { 'X-Upstream': 'yes' }).end('made')),
})
const { origin, proxy, waiting, approve, deny, call } = review

/** An agent whose requests wait as the rule says. */
async function agentOf(rule: object) {
  const hold = { name: 'hold', effect: 'Hitl', conditions: [], ...rule }
  return review.agent({ policyName: await review.policy({ name: `held-${randomUUID()}`, rules: [hold] }) })
}

const post = { method: 'POST', body: 'a body' }
const patient = await agentOf({ waitSeconds: 600 })
const refused = await agentOf({ waitSeconds: 1, whenUndecided: 'refused' })
const statusOf = async (id: string) =>
  ((await (await call('GET', `/hitl/status/${id}`)).json()) as { status: string }).status
const auditOf = async (id: string) =>
  (JSON.parse((await review.manage('GET', `/audit?subject=${id}`)).text).items as { action: string }[]).map(
    ({ action }) => action,
  )

t.beforeEach(() => {
  origin.seen.length = 0
})

async function onlyItem(t: Test, bot: Parameters<typeof waiting>[0]): Promise<string> {
  const [item, ...more] = await waiting(bot, 1)
  t.equal(more.length, 0)
  return item!.id
}

t.test('the call itself waits as long as its rule says, and gets what was approved', async t => {
  const answer = proxy(patient.token, `${origin.url}/things`, post)
  const id = await onlyItem(t, patient)
  await (await approve(id)).text()
  const { status, headers } = await answer
  t.match({ status, body: await (await answer).text() }, { status: 201, body: 'made' })
  t.equal(headers.get('gateway-hitl-id'), id)
  t.equal(headers.get('preference-applied'), null)
  t.equal(origin.seen.length, 1)
})

t.test('what is denied is 403 with the comment, and a client may say how long it waits', async t => {
  const answer = proxy(patient.token, `${origin.url}/things`, post)
  const id = await onlyItem(t, patient)
  await deny(id, { comment: 'not today' })
  t.match(await (await answer).json(), { status: 403, code: 'hitl_denied', hitlId: id, comment: 'not today' })
  t.equal(origin.seen.length, 0)
  for (const Prefer of ['respond-async', 'wait=0', 'wait=1']) {
    const early = await proxy(patient.token, `${origin.url}/${Prefer}`, { ...post, headers: { Prefer } })
    t.equal(early.status, 202, Prefer)
    await (await deny(early.headers.get('gateway-hitl-id')!)).text()
  }
})

t.test('undecided, a rule that says refused answers 503 with Retry-After, and the retry gets the outcome', async t => {
  const first = await proxy(refused.token, `${origin.url}/things`, post)
  t.match(first.headers.get('retry-after'), /^\d+$/)
  const { code, hitlId } = (await first.json()) as { code: string; hitlId: string }
  t.match({ status: first.status, code }, { status: 503, code: 'review_pending' })
  const second = proxy(refused.token, `${origin.url}/things`, { ...post, headers: { 'X-Stainless-Retry-Count': '1' } })
  t.equal(await onlyItem(t, refused), hitlId)
  t.match(await (await second).json(), { code: 'review_pending', hitlId })
  await (await approve(hitlId)).text()
  const third = await proxy(refused.token, `${origin.url}/things`, post)
  t.equal(await third.text(), 'made')
  t.equal(origin.seen.length, 1, 'sent once')
  const next = await proxy(refused.token, `${origin.url}/things`, post)
  t.equal(next.status, 503, 'its outcome was told: this is another request')
  t.not(((await next.json()) as { hitlId: string }).hitlId, hitlId)
  t.equal(origin.seen.length, 1)
})

t.test('the same request while it is held joins it, also of two at once; others and other agents do not', async t => {
  const bot = await agentOf({ waitSeconds: 600 })
  const other = await agentOf({ waitSeconds: 600 })
  const same = [1, 2, 3, 4].map(count =>
    proxy(bot.token, `${origin.url}/join`, { ...post, headers: { 'X-Stainless-Retry-Count': String(count) } }),
  )
  const id = await onlyItem(t, bot)
  const another = proxy(bot.token, `${origin.url}/join`, { ...post, body: 'another body' })
  const stranger = proxy(other.token, `${origin.url}/join`, post)
  await Promise.all([waiting(bot, 2), waiting(other, 1), eventually(review.gateway.inFlight, count => count === 6)])
  await (await approve(id)).text()
  for (const answer of await Promise.all(same)) {
    t.match([answer.status, answer.headers.get('gateway-hitl-id')], [201, id])
  }
  t.equal(origin.seen.length, 1)
  for (const { id } of [...(await waiting(bot, 1)), ...(await waiting(other, 1))]) await deny(id)
  t.match([(await another).status, (await stranger).status], [403, 403])
})

t.test(
  'when the call that waits is gone the request is withdrawn, and an approval is refused with that reason',
  async t => {
    const bot = await agentOf({ waitSeconds: 600 })
    const gone = new AbortController()
    const answer = proxy(bot.token, `${origin.url}/leave`, { ...post, signal: gone.signal })
    const id = await onlyItem(t, bot)
    gone.abort()
    await t.rejects(answer)
    t.equal(
      await eventually(
        () => statusOf(id),
        status => status !== 'Pending',
      ),
      'Withdrawn',
    )
    t.match(await (await approve(id)).json(), { status: 409, code: 'withdrawn', hitlId: id })
    t.equal(origin.seen.length, 0)
    t.strictSame((await auditOf(id)).sort(), ['hitl.suspend', 'hitl.withdraw'])
  },
)

t.test('a client that got 202 has left by design: its request stays held', async t => {
  const bot = await agentOf({ waitSeconds: 600 })
  const told = await proxy(bot.token, `${origin.url}/stays`, { ...post, headers: { Prefer: 'respond-async' } })
  t.equal(told.status, 202)
  const id = told.headers.get('gateway-hitl-id')!
  const gone = new AbortController()
  const again = proxy(bot.token, `${origin.url}/stays`, { ...post, signal: gone.signal })
  const both = await waiting(bot, 2)
  gone.abort()
  await t.rejects(again)
  const left = both.find(item => item.id !== id)!.id
  t.equal(
    await eventually(
      () => statusOf(left),
      status => status !== 'Pending',
    ),
    'Withdrawn',
  )
  t.equal(await statusOf(id), 'Pending')
})

t.test('DELETE /hitl/{id} ends the call that waits, and asks SDKs not to try again', async t => {
  const bot = await agentOf({ waitSeconds: 600 })
  const answer = proxy(bot.token, `${origin.url}/delete`, post)
  const id = await onlyItem(t, bot)
  t.equal((await call('DELETE', `/hitl/${id}`, { token: bot.token })).status, 200)
  const { status, headers } = await answer
  t.match([status, headers.get('gateway-error'), headers.get('x-should-retry')], [409, 'withdrawn', 'false'])
})

t.test('the wait of an agent that is revoked ends, and its request is withdrawn', async t => {
  const bot = await agentOf({ waitSeconds: 600 })
  const answer = proxy(bot.token, `${origin.url}/revoked`, post)
  const id = await onlyItem(t, bot)
  await review.manage('POST', `/agents/${bot.id}/revoke`)
  t.match(await (await answer).json(), { code: 'agent_revoked' })
  t.equal(
    await eventually(
      () => statusOf(id),
      status => status !== 'Pending',
    ),
    'Withdrawn',
  )
  t.equal((await approve(id)).status, 409)
  t.equal(origin.seen.length, 0)
})

t.test('waitSeconds and whenUndecided are for Hitl rules, and no longer than a request is held', async t => {
  for (const rule of [
    { effect: 'Allow', waitSeconds: 5 },
    { effect: 'Deny', whenUndecided: 'refused' },
    { effect: 'Hitl', waitSeconds: 3_601 },
    { effect: 'Hitl', waitSeconds: -1 },
    { effect: 'Hitl', whenUndecided: 'later' },
  ]) {
    const rules = [{ name: 'r', conditions: [], ...rule }]
    const { status, text } = await review.manage('POST', '/policies', { name: 'wrong', rules })
    t.match([status, JSON.parse(text).errors[0].field], [400, /^rules\[0\]\.(?:waitSeconds|whenUndecided)$/])
  }
})
