import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('an agent is read whole, but for its secret', async t => {
  const { call, admin, agent } = control
  const bot = await agent({ name: 'bot', roles: ['agent', 'reviewer'] })
  const { status, json } = await call('GET', `/agents/${bot.id.toUpperCase()}`, { token: admin.token })
  t.equal(status, 200)
  t.strictSame(json, {
    id: bot.id,
    name: 'bot',
    ownerId: 'o',
    status: 'Active',
    policyName: null,
    trustScore: 0.5,
    roles: ['agent', 'reviewer'],
    externalSubject: null,
    tags: {},
    recording: null,
    createdAt: '2026-01-05T10:00:00.000Z',
  })
})

t.test('an agent that is not there is 404, however it is spelled', async t => {
  const { call, admin } = control
  const ids = ['00000000-0000-4000-8000-000000000000', 'x', '__proto__', '..%2f..%2fetc%2fpasswd', 'a'.repeat(300)]
  for (const id of ids)
    t.match(
      await call('GET', `/agents/${id}`, { token: admin.token }),
      { status: 404, json: { code: 'not_found' } },
      id,
    )
})
