import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('a deleted agent is gone, and its token is worth nothing', async t => {
  const { call, admin, person } = control
  const auditor = await person('auditor')
  const { status, text } = await call('DELETE', `/agents/${auditor.agent.id}`, { token: admin.token })
  t.strictSame({ status, text }, { status: 200, text: '' })
  t.match(await call('GET', '/agents', { token: auditor.token }), { status: 401 })
  t.match(await call('DELETE', `/agents/${auditor.agent.id}`, { token: admin.token }), { status: 404 })
})

t.test('of two deletions at once one finds the agent', async t => {
  const { call, admin, agent } = control
  const bot = await agent()
  const calls = [1, 2].map(() => call('DELETE', `/agents/${bot.id}`, { token: admin.token }))
  t.strictSame((await Promise.all(calls)).map(({ status }) => status).sort(), [200, 404])
})
