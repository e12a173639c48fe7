import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('new roles count for the next call, with the token that was issued before', async t => {
  const { call, admin, person } = control
  const bot = await person('agent')
  t.match(await call('GET', '/agents', { token: bot.token }), { status: 403 })
  const path = `/agents/${bot.agent.id}/roles`
  t.match(await call('PUT', path, { token: admin.token, body: { roles: ['agent', 'auditor'] } }), {
    status: 200,
    text: '',
  })
  t.match(await call('GET', '/agents', { token: bot.token }), { status: 200 })
  await call('PUT', path, { token: admin.token, body: { roles: ['agent'] } })
  t.match(await call('GET', '/agents', { token: bot.token }), { status: 403 })
})

t.test('roles that are none are 400, an agent that is not there is 404', async t => {
  const { call, admin, agent, registry } = control
  const bot = await agent()
  for (const roles of [[], ['root'], ['agent', 'agent'], 'admin', null])
    t.match(await call('PUT', `/agents/${bot.id}/roles`, { token: admin.token, body: { roles } }), { status: 400 })
  t.strictSame(registry.get(bot.id)?.roles, ['agent'])
  t.match(await call('PUT', '/agents/x/roles', { token: admin.token, body: { roles: ['agent'] } }), { status: 404 })
})
