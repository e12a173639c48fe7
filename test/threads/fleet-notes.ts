import t from 'tap'
import type { Incident } from '../../src/limits/incidents.ts'
import { FleetNotes } from '../../src/threads/fleet-notes.ts'

const incident = (requestId: string, agentId = 'a1'): Incident => ({
  ...{ at: 1, agentId, requestId, method: 'GET', origin: 'http://x', path: '/', outcome: 'policy_denied' },
  ...{ denied: true, policy: 'p', rule: 'r', hitlId: null },
})

t.test('notes of one kind are one note with their number, and bodies to one host have their sum', async t => {
  const waiting = new FleetNotes()
  t.equal(waiting.take(), undefined)
  waiting.add([
    [['request', 'a1', 10], 3],
    [['sent', 'a1', 10, 'x', 100], 2],
    [['hit', 'p', 'r', 2], 1],
  ])
  waiting.add([
    [['request', 'a1', 20], 1],
    [['sent', 'a1', 20, 'x', 400], 1],
    [['sent', 'a1', 20, 'x', 0], 7],
    [['hit', 'p', 'r', 3], 1],
  ])
  t.strictSame(waiting.take(), [
    [['request', 'a1', 20], 4],
    [['sent', 'a1', 20, 'x', 200], 3],
    [['hit', 'p', 'r', 5], 1],
  ])
  t.equal(waiting.take(), undefined, 'they are told once')
})

t.test('verdicts and changed tools are not sent: every gateway gets them as events', async t => {
  const waiting = new FleetNotes()
  waiting.add([
    [['humanDenied', 'a1', 1], 1],
    [['toolChanged', 'a1', 1], 1],
  ])
  t.equal(waiting.take(), undefined)
})

t.test('names that one agent makes up leave room for its counts and for other agents', async t => {
  const waiting = new FleetNotes()
  for (let number = 0; number < 500; number++) waiting.add([[['sent', 'a1', 1, `host${number}`, 1], 1]])
  for (let number = 0; number < 500; number++) waiting.add([[['incident', incident(`i${number}`)], 1]])
  waiting.add([
    [['denied', 'a1', 1], 500],
    [['incident', incident('other', 'a2')], 1],
  ])
  const told = waiting.take() ?? []
  t.equal(told.length, 203, '100 hosts and 100 incidents of the first agent')
  t.strictSame(told[100], [['sent', 'a1', 1, '', 1], 400], 'bodies to the hosts that are not named count')
  t.strictSame(told.at(-2), [['denied', 'a1', 1], 500])
  t.strictSame(told.at(-1), [['incident', incident('other', 'a2')], 1])
})
