import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { eventually } from '../fixtures/gateway.ts'

const minute = 60_000

t.test('a reviewer gives a request more time, and everybody sees it', async t => {
  const { call, person, suspend, clock, events, store, queue, tokenOf } = await startControl(t)
  const { agent } = await person('agent')
  const { agent: reviewer } = await person('reviewer')
  const id = await suspend(agent)
  const told: string[] = []
  events.subscribe(({ type, data }) => void (type === 'extended' && told.push(String(data['expiresAt']))))
  clock.advance(59 * minute)
  const token = await tokenOf(reviewer)
  const extended = await call('POST', `/hitl/${id}/extend`, { token, body: {} })
  t.match(extended, { status: 200, json: { id, expiresAt: '2026-01-05T11:05:00.000Z' } })
  t.match((await call('POST', `/hitl/${id}/extend`, { token, body: { minutes: 10 } })).json, {
    expiresAt: '2026-01-05T11:15:00.000Z',
  })
  await eventually(
    () => told.length,
    count => count === 2,
  )
  t.strictSame(told, ['2026-01-05T11:05:00.000Z', '2026-01-05T11:15:00.000Z'])
  t.match((await call('GET', '/hitl', { token })).json, [{ id, expiresAt: '2026-01-05T11:15:00.000Z' }])
  clock.advance(10 * minute)
  await queue.sweep()
  t.match((await call('GET', `/hitl/${id}`, { token: await tokenOf(reviewer) })).json, {
    status: 'Pending',
    pending: { expiresAt: '2026-01-05T11:15:00.000Z' },
  })
  const { items } = await store.audit.list({ page: 1, pageSize: 5 }, { action: 'hitl.extend' })
  t.match(items.at(-1), {
    actor: reviewer.id,
    subject: id,
    details: { from: '2026-01-05T11:00:00.000Z', to: '2026-01-05T11:05:00.000Z' },
  })
  clock.advance(6 * minute)
  t.equal((await call('POST', `/hitl/${id}/extend`, { token: await tokenOf(reviewer) })).status, 404)
})

t.test('no request waits longer than 24 hours', async t => {
  const { call, person, suspend } = await startControl(t)
  const { agent } = await person('agent')
  const { token } = await person('reviewer')
  const id = await suspend(agent)
  const hour = () => call('POST', `/hitl/${id}/extend`, { token, body: { minutes: 60 } })
  for (let hours = 1; hours < 24; hours++) t.equal((await hour()).status, 200)
  t.match(await hour(), { status: 409, json: { code: 'wrong_state' } })
})

t.test('what was decided, what is not there and what is one’s own is not extended', async t => {
  const { call, person, suspend, agent, tokenOf } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  const extend = (id: string, as = token, body: object = {}) => call('POST', `/hitl/${id}/extend`, { token: as, body })
  t.match(await extend('nobody'), { status: 404 })
  const id = await suspend(bot.agent)
  for (const minutes of [0, 61, 1.5, '5']) t.match(await extend(id, token, { minutes }), { status: 400 })
  await call('POST', `/hitl/${id}/deny`, { token })
  t.match(await extend(id), { status: 409, json: { code: 'already_decided' } })
  const self = await agent({ name: 'both', roles: ['reviewer'] })
  t.match(await extend(await suspend(self), await tokenOf(self)), { status: 403, json: { code: 'own_request' } })
})
