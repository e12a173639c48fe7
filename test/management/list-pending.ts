import t from 'tap'
import { startControl } from '../fixtures/control.ts'

t.test('pending requests are listed, oldest first', async t => {
  const { call, person, suspend, clock } = await startControl(t)
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const first = await suspend(bot.agent)
  clock.advance(1_000)
  const second = await suspend(bot.agent, { url: 'https://b.example/' })
  const { status, json } = await call('GET', '/hitl', { token: reviewer.token })
  t.equal(status, 200)
  t.match(json, [
    {
      id: first,
      method: 'POST',
      url: 'https://api.shop.example/v1/refunds',
      reason: /refunds/,
      agentId: bot.agent.id,
      timestamp: '2026-01-05T10:00:00.000Z',
      expiresAt: '2026-01-05T11:00:00.000Z',
      status: 'Pending',
    },
    { id: second, url: 'https://b.example/' },
  ])
})
