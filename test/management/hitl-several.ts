import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { answered, type HeldOptions } from '../fixtures/hitl.ts'

const control = await startControl(t)
const { call, person, suspend, upstream, registry } = control
const bot = await person('agent')
const { token, agent: reviewer } = await person('reviewer')

async function hold(more: HeldOptions = {}): Promise<{ id: string; digest: string }> {
  const id = await suspend(bot.agent, more)
  return { id, digest: (await call('GET', `/hitl/${id}`, { token })).json.pending.digest }
}
const decide = (body: object) => call('POST', '/hitl/verdicts', { token, body })

t.beforeEach(() => {
  upstream.sent.length = 0
})

t.test('one denial of several requests has an outcome for each', async t => {
  const [one, two, three] = [await hold(), await hold({ url: 'https://other.example/' }), await hold({ rule: 'x' })]
  await call('POST', `/hitl/${three.id}/deny`, { token })
  const items = [one, { ...two, digest: 'another' }, three, { id: 'nobody', digest: 'x' }]
  const { status, json } = await decide({ verdict: 'deny', comment: 'not today', items })
  t.equal(status, 200)
  t.match(json.outcomes, [
    { id: one.id, outcome: 'denied' },
    { id: two.id, outcome: 'refused', status: 412, code: 'not_as_seen' },
    { id: three.id, outcome: 'refused', status: 409, code: 'already_decided' },
    { id: 'nobody', outcome: 'refused', status: 404, code: 'not_found' },
  ])
  const { json: read } = await call('GET', `/hitl/${one.id}`, { token })
  t.match(read, { status: 'Denied', pending: { comment: 'not today', decidedBy: reviewer.id } })
})

t.test('one approval sends each of a group once, and what fails fails alone', async t => {
  const items = [await hold({ body: '1' }), await hold({ body: '2' }), await hold({ body: '3' })]
  upstream.answer = async ({ body }) => {
    if (Buffer.from(body).toString() === '2') throw new Error('reset')
    return answered('done', 201)
  }
  const { json } = await decide({ verdict: 'approve', items: [...items, items[0]!] })
  t.match(json.outcomes.slice(1, 3), [
    { id: items[1]!.id, outcome: 'refused', status: 502, code: 'upstream_failed' },
    { id: items[2]!.id, outcome: 'sent', upstreamStatus: 201 },
  ])
  t.strictSame([json.outcomes[0].outcome, json.outcomes[3].outcome].sort(), ['refused', 'sent'])
  t.equal(upstream.sent.length, 3)
  upstream.answer = async () => answered()
})

t.test('an approval that is not the last is counted', async t => {
  const item = await hold({ approvals: 2 })
  t.match((await decide({ verdict: 'approve', items: [item] })).json.outcomes, [{ id: item.id, outcome: 'counted' }])
  t.equal(upstream.sent.length, 0)
})

t.test('approvals of more than one group are refused as a whole', async t => {
  const item = await hold()
  const others: HeldOptions[] = [
    { rule: 'another' },
    { method: 'PUT' },
    { url: 'https://other.example/v1/refunds' },
    { url: 'https://api.shop.example/v1/refund' },
  ]
  for (const other of others) {
    const answer = await decide({ verdict: 'approve', items: [item, await hold(other)] })
    t.match(
      answer,
      { status: 400, json: { code: 'invalid_body', errors: [{ field: 'items' }] } },
      JSON.stringify(other),
    )
  }
  t.equal(upstream.sent.length, 0)
  const sameWithQuery = await hold({ url: 'https://api.shop.example/v1/refunds?a=b' })
  t.match((await decide({ verdict: 'approve', items: [item, sameWithQuery] })).json.outcomes, [
    { outcome: 'sent' },
    { outcome: 'sent' },
  ])
})

t.test('nobody decides requests of their own, several of them neither', async t => {
  const self = await control.agent({ name: 'both', roles: ['reviewer'] })
  const id = await suspend(self)
  const body = { verdict: 'deny', items: [{ id, digest: 'x' }] }
  const own = await call('POST', '/hitl/verdicts', { token: await control.tokenOf(self), body })
  t.match(own, { status: 200, json: { outcomes: [{ outcome: 'refused', status: 403, code: 'own_request' }] } })
})

t.test('a reviewer who loses the role meanwhile decides no more', async t => {
  const other = await person('reviewer')
  const items = [await hold(), await hold(), await hold(), await hold(), await hold(), await hold()]
  upstream.answer = async () => {
    await registry.setRoles(other.agent.id, ['agent'], { actor: 'gateway', requestId: 'r' })
    return answered()
  }
  const { json } = await call('POST', '/hitl/verdicts', { token: other.token, body: { verdict: 'approve', items } })
  t.match(json.outcomes.slice(4), [
    { outcome: 'refused', status: 403, code: 'forbidden' },
    { outcome: 'refused', status: 403, code: 'forbidden' },
  ])
  t.ok(upstream.sent.length <= 4)
  upstream.answer = async () => answered()
})

t.test('bodies that are not as documented are 400', async t => {
  const items = [{ id: 'a', digest: 'b' }]
  const wrong: object[] = [
    { verdict: 'deny' },
    { items },
    { verdict: 'deny', items: [] },
    { verdict: 'deny', items: Array.from({ length: 101 }, () => items[0]) },
    { verdict: 'deny', items: [{ id: 'a' }] },
    { verdict: 'resend', items },
    { verdict: 'approve', items, grant: { minutes: 1, maxUses: 1 } },
  ]
  for (const body of wrong) t.match(await decide(body), { status: 400, json: { code: 'invalid_body' } })
})
