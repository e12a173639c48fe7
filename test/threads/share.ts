/** What one thread or gateway tells the others of its activity. */
import { mock } from 'node:test'
import t from 'tap'
import type { Incident } from '../../src/limits/incidents.ts'
import type { NoteBatch, NoteLink } from '../../src/threads/notes.ts'
import { shareActivity } from '../../src/threads/share.ts'

/** A link that keeps what it is sent; `tell` is what comes over it. */
function fakeLink(): NoteLink & { readonly sent: NoteBatch[]; tell(notes: NoteBatch): void } {
  const sent: NoteBatch[] = []
  let take: (notes: NoteBatch) => void = () => {}
  return {
    sent,
    tell: notes => take(notes),
    send: notes => sent.push(notes),
    receive(taker) {
      take = taker
    },
    close() {},
  }
}

const incident: Incident = {
  ...{ at: 1, agentId: 'a1', requestId: 'r1', method: 'GET', origin: 'http://x', path: `/${'p'.repeat(5_000)}` },
  ...{ outcome: 'policy_denied', denied: true, policy: 'p', rule: 'r', hitlId: null },
}

t.test('each message is sent once, what is received goes on to the other links, and comes back from none', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const [threads, fleet] = [fakeLink(), fakeLink()]
  const recent = shareActivity([threads, fleet])
  recent.activity.request('a1', 10)
  recent.hits.note('p', 'r')
  recent.hits.note('p', 'r')
  recent.shadows.note('p', 'r', 'Deny')
  mock.timers.tick(1_000)
  const told: NoteBatch = [
    [['request', 'a1', 10], 1],
    [['hit', 'p', 'r', 2], 1],
    [['shadow', 'p', 'r', 'Deny'], 1],
  ]
  t.strictSame([threads.sent, fleet.sent], [[told], [told]])
  const heard: NoteBatch = [
    [['request', 'a1', 11], 5],
    [['hit', 'p', 'r', 3], 2],
    [['shadow', 'p', 'r', 'Deny'], 4],
    [['denied', 'a1', 11], 2],
  ]
  threads.tell(heard)
  mock.timers.tick(1_000)
  t.strictSame([threads.sent, fleet.sent], [[told], [told, heard]])
  t.match(recent.activity.of('a1', 11), { requestsLastMinute: 6, deniedLast10m: 2 })
  t.strictSame(recent.hits.of('p'), [{ policy: 'p', rule: 'r', would: null, count: 8 }])
  t.strictSame(recent.shadows.of('p'), [{ policy: 'p', rule: 'r', would: 'Deny', count: 5 }])
})

t.test('a long path is sent as short as it is kept', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const link = fakeLink()
  const recent = shareActivity([link])
  recent.incidents.note(incident)
  mock.timers.tick(1_000)
  t.strictSame(link.sent, [[[['incident', recent.incidents.of('a1')[0]], 1]]])
  t.ok(JSON.stringify(link.sent).length < 1_000)
})
