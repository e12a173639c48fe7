/** Threat T36 of SECURITY.md. */

import t from 'tap'
import { held, listed, openDesk, otherAgent, reviewer, secondReviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('a line of the list says what the request itself says', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  desk.names.set('agent-1', 'bot\u202e "1"')
  const id = await suspended(desk, { approvals: 2, risk: 0.9, url: 'https://api.example/\u202e?token=abc' })
  desk.clock.advance(1_000)
  await suspended(desk, { agent: otherAgent })
  desk.clock.advance(60_000)
  await desk.queue.approve(id, verdict())
  const [line, other] = await listed(desk)
  const detail: object | undefined = await desk.queue.get(id, secondReviewer)
  t.match(line, { agentName: 'bot\\u{202e} "1"', waitedSeconds: 61, approvedBy: ['reviewer-1'], risk: { score: 0.9 } })
  t.equal(line?.url, 'https://api.example/\\u{202e}?token=[REDACTED]')
  const shared = Object.entries(detail ?? {}).filter(([name]) => name in (line ?? {}))
  t.strictSame(line, Object.fromEntries(shared))
  t.match(other, { agentName: null, waitedSeconds: 60, approvedBy: [] })
})

t.test('what an agent sent deceives nobody, wherever it is shown', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const deceptive = 'pay\u202e\u0000me'
  const suspension = held()
  const decision = {
    ...suspension.decision,
    reason: `was ${deceptive}`,
    matched: [{ condition: 'input.body.a eq "x"', actual: [deceptive, 7, null] }],
    risk: { score: 0.9, threshold: 0.8, signals: [{ signal: 'host', points: 1, detail: deceptive }] },
  }
  const result = await desk.queue.suspend({ ...suspension, decision })
  const id = 'id' in result ? result.id : ''
  const written = 'pay\\u{202e}\\u{0}me'
  const shown = {
    reason: `was ${written}`,
    matched: [{ condition: 'input.body.a eq "x"', actual: [written, 7, null] }],
    risk: { score: 0.9, threshold: 0.8, signals: [{ signal: 'host', points: 1, detail: written }] },
  }
  t.match((await listed(desk))[0], shown)
  // The store keeps U+FFFD in the place of U+0000.
  t.match(await desk.queue.get(id, reviewer), { ...shown, reason: 'was pay\\u{202e}\ufffdme' })
  t.match(desk.events[0]?.data, shown)
})

t.test('more than are read at one go are listed once each, oldest first', async t => {
  const desk = await openDesk({ directory: testdir(t), settings: { MaxPendingRequests: 1_000 } })
  t.teardown(() => desk.store.close())
  const ids: string[] = []
  for (let n = 0; n < 250; n++) {
    if (n % 3 === 0) desk.clock.advance(1)
    ids.push(await suspended(desk))
  }
  const lines = await listed(desk)
  t.strictSame(lines.map(line => line.id).sort(), ids.sort())
  t.strictSame(
    lines.map(line => line.timestamp),
    lines.map(line => line.timestamp).sort(),
  )
})
