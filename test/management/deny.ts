import { startControl } from '../fixtures/control.ts'
import t from '../fixtures/tap.ts'

const control = await startControl(t)

t.test('a denied request is never sent', async t => {
  const { call, person, suspend, upstream, store } = control
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const id = await suspend(bot.agent)
  const { status, text } = await call('POST', `/hitl/${id}/deny`, { token: reviewer.token, body: { comment: 'no' } })
  t.same({ status, text }, { status: 200, text: '' })
  t.match(await call('GET', `/hitl/status/${id}`, { token: bot.token }), { json: { status: 'Denied' } })
  t.match(await call('POST', `/hitl/${id}/approve`, { token: reviewer.token }), { status: 409 })
  t.equal(upstream.sent.length, 0)
  const { items } = await store.audit.list({ page: 1, pageSize: 5 }, { action: 'hitl.deny' })
  t.match(items, [{ actor: reviewer.agent.id, subject: id, details: { comment: 'no' } }])
})

t.test('own requests, unknown ids and bad bodies are refused', async t => {
  const { call, person, suspend } = control
  const own = await person('reviewer')
  const id = await suspend(own.agent)
  const deny = (body: unknown, at = id) => call('POST', `/hitl/${at}/deny`, { token: own.token, body })
  t.match(await deny({}), { status: 403, json: { code: 'own_request' } })
  t.match(await deny({}, 'unknown'), { status: 404 })
  t.match(await deny({ comment: 'x'.repeat(2_001) }), { status: 400 })
  t.match(await deny({ resend: true }), { status: 400, json: { errors: [{ field: 'resend' }] } })
})
