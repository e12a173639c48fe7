import { refuse } from '../../src/errors.ts'
import { startControl } from '../fixtures/control.ts'
import { answered } from '../fixtures/hitl.ts'
import t from '../fixtures/tap.ts'

const control = await startControl(t)

async function start() {
  control.upstream.sent.length = 0
  control.upstream.answer = async () => answered()
  const bot = await control.person('agent')
  const reviewer = await control.person('reviewer')
  const id = await control.suspend(bot.agent)
  const approve = (more: object = {}) => control.call('POST', `/hitl/${id}/approve`, { token: reviewer.token, ...more })
  return { ...control, bot, reviewer, id, approve }
}

t.test("the reviewer gets the upstream's answer, made harmless for a browser", async t => {
  const { approve, upstream, id } = await start()
  upstream.answer = async () =>
    ({
      ...answered('<script>'),
      status: 201,
      rawHeaders: [
        'Content-Type',
        'text/html',
        'Cache-Control',
        'public',
        'X-Upstream',
        'yes',
        'Gateway-Error',
        'forged',
      ],
    }) as never
  const { status, text, headers } = await approve({ body: { comment: 'fine' } })
  t.same({ status, text }, { status: 201, text: '<script>' })
  t.match(Object.fromEntries(headers), {
    'content-type': 'text/html',
    'x-upstream': 'yes',
    'gateway-hitl-id': id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': 'sandbox',
  })
  t.equal(headers.get('gateway-error'), null)
  t.equal(upstream.sent.length, 1)
})

t.test('an answer comes as it is: empty, an error, or long', async t => {
  for (const [status, body] of [
    [204, ''],
    [500, 'broken'],
    [200, 'x'.repeat(200_000)],
  ] as const) {
    const { approve, upstream } = await start()
    upstream.answer = async () => answered(body, status)
    const answer = await approve()
    t.same({ status: answer.status, text: answer.text }, { status, text: body })
    t.equal(answer.headers.get('gateway-error'), null)
  }
})

t.test('a second verdict is told the outcome, and nothing is sent again', async t => {
  const { approve, call, reviewer, id, upstream } = await start()
  await approve()
  const again = { status: 409, json: { code: 'already_decided', hitlStatus: 'Approved', decidedBy: reviewer.agent.id } }
  t.match(await approve(), again)
  t.match(await call('POST', `/hitl/${id}/deny`, { token: reviewer.token }), again)
  t.equal(upstream.sent.length, 1)
})

t.test('nobody approves a request of their own', async t => {
  const { call, person, suspend, upstream } = await start()
  const own = await person('reviewer')
  const id = await suspend(own.agent)
  t.match(await call('POST', `/hitl/${id}/approve`, { token: own.token }), {
    status: 403,
    json: { code: 'own_request' },
  })
  t.match(await call('GET', `/hitl/${id}`, { token: own.token }), { json: { status: 'Pending' } })
  t.equal(upstream.sent.length, 0)
})

t.test('what is not there, or not any more, is 404', async t => {
  const { approve, call, reviewer, clock, tokenOf, upstream } = await start()
  t.match(await call('POST', '/hitl/unknown/approve', { token: reviewer.token }), { status: 404 })
  clock.advance(3_600_000)
  t.match(await approve({ token: await tokenOf(reviewer.agent) }), { status: 404 })
  t.equal(upstream.sent.length, 0)
})

t.test('an upstream that fails is 502, and the request can be sent again only when asked for', async t => {
  const { approve, upstream } = await start()
  upstream.answer = async () => ({ kind: 'failed', refusal: refuse('upstream_failed') })
  t.match(await approve(), { status: 502, json: { code: 'upstream_failed' } })
  t.match(await approve(), { status: 409 })
  upstream.answer = async () => answered('at last')
  t.match(await approve({ body: { resend: true } }), { status: 200, text: 'at last' })
  t.equal(upstream.sent.length, 2)
})

t.test('the request of an agent that was revoked meanwhile is not sent', async t => {
  const { approve, registry, bot, upstream } = await start()
  await registry.transition(bot.agent.id, 'revoke', { actor: 'gateway', requestId: null })
  t.match(await approve(), { status: 403, json: { code: 'agent_revoked' } })
  t.equal(upstream.sent.length, 0)
})

t.test('a comment is text of at most 2000 characters', async t => {
  const { approve, upstream, store } = await start()
  for (const comment of ['x'.repeat(10_240), 5, null, {}])
    t.match(await approve({ body: { comment } }), {
      status: 400,
      json: { code: 'invalid_body', errors: [{ field: 'comment' }] },
    })
  t.match(await approve({ body: '{' }), { status: 400 })
  t.equal(upstream.sent.length, 0)
  const comment = 'line\r\n\u001b[31mred'
  t.match(await approve({ body: { comment } }), { status: 200 })
  const { items } = await store.audit.list({ page: 1, pageSize: 50 }, { action: 'hitl.approve' })
  t.match(items, [{ details: { comment } }])
})

t.test('of many approvals at once one sends', async t => {
  const { approve, upstream } = await start()
  const answers = await Promise.all(Array.from({ length: 20 }, () => approve()))
  t.strictSame(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(409)])
  t.equal(upstream.sent.length, 1)
})
