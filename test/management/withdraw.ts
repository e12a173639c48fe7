import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('what its agent withdraws is not sent, and a later verdict is refused with that reason', async t => {
  const { call, person, suspend, upstream, store } = control
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const id = await suspend(bot.agent)
  t.match(await call('DELETE', `/hitl/${id}`, { token: bot.token }), { status: 200, text: '' })
  t.match(await call('GET', `/hitl/status/${id}`, { token: bot.token }), { json: { status: 'Withdrawn' } })
  const { json } = await call('GET', `/hitl/${id}`, { token: reviewer.token })
  t.match(json.past ?? json.pending ?? json, { status: 'Withdrawn', headers: {}, body: '[DELETED]' })
  const kept = await store.hitl.get(id, control.clock.now())
  t.strictSame([kept?.headers, kept?.body, await store.hitl.sealed(id)], [{}, '', undefined], 'nothing of it is stored')
  for (const verdict of ['approve', 'deny']) {
    const refused = await call('POST', `/hitl/${id}/${verdict}`, { token: reviewer.token })
    t.match(refused, { status: 409, json: { code: 'withdrawn', hitlId: id, hitlStatus: 'Withdrawn' } })
  }
  t.match(await call('DELETE', `/hitl/${id}`, { token: bot.token }), { status: 200 })
  t.equal(upstream.sent.length, 0)
  const { items } = await store.audit.list({ page: 1, pageSize: 5 }, { action: 'hitl.withdraw' })
  t.match(items, [{ actor: bot.agent.id, subject: id, details: { cause: 'asked' } }])
  t.equal(items.length, 1)
})

t.test('nobody withdraws the requests of others, or what was decided', async t => {
  const { call, person, suspend } = control
  const bot = await person('agent')
  const [other, reviewer, admin] = [await person('agent'), await person('reviewer'), await person('admin')]
  const id = await suspend(bot.agent)
  for (const { token } of [other, reviewer, admin]) {
    t.match(await call('DELETE', `/hitl/${id}`, { token }), { status: 404, json: { code: 'not_found' } })
  }
  t.match(await call('DELETE', '/hitl/unknown', { token: bot.token }), { status: 404 })
  await call('POST', `/hitl/${id}/deny`, { token: reviewer.token })
  const late = await call('DELETE', `/hitl/${id}`, { token: bot.token })
  t.match(late, { status: 409, json: { code: 'already_decided', hitlStatus: 'Denied' } })
})
