/** Threat T01 of SECURITY.md. */

import t from 'tap'
import { createRepeats } from '../../src/audit/repeats.ts'
import type { AuditEntry } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'

function start() {
  const clock = createClock()
  const written: AuditEntry[] = []
  const store = { fails: false }
  const audit = async (entry: AuditEntry) => {
    if (store.fails) throw new TypeError('the store is gone')
    written.push(entry)
  }
  const repeats = createRepeats({ audit, clock })
  const note = (subject = 'deleteAgent', actor = 'a1') =>
    repeats.note({ at: clock.now(), actor, action: 'management.refused', subject, requestId: 'r', details: { x: 1 } })
  const since = new Date(clock.now()).toISOString()
  return { clock, written, store, repeats, note, since }
}

t.test('the first is an entry at once, those within a minute are one more with their count', async t => {
  const { clock, written, repeats, note, since } = start()
  await Promise.all(Array.from({ length: 300 }, () => note()))
  t.match(written, [{ subject: 'deleteAgent', details: { x: 1 } }])
  clock.advance(59_999)
  await note()
  await repeats.sweep()
  t.equal(written.length, 1)
  clock.advance(1)
  await repeats.sweep()
  t.strictSame(written[1]?.details, { x: 1, count: 300, since })
  await repeats.sweep()
  t.equal(written.length, 2)
  await note()
  t.equal(written.length, 3, 'a new window begins with an entry')
})

t.test('callers and operations are counted apart', async t => {
  const { written, repeats, note } = start()
  for (const [subject, actor] of [
    ['x', 'a1'],
    ['y', 'a1'],
    ['x', 'a2'],
  ])
    for (let times = 0; times < 3; times++) await note(subject, actor)
  t.equal(written.length, 3)
  await repeats.close()
  t.strictSame(
    written.slice(3).map(({ subject, actor, details }) => [subject, actor, details['count']]),
    [
      ['x', 'a1', 2],
      ['y', 'a1', 2],
      ['x', 'a2', 2],
    ],
  )
})

t.test('a refusal behind the window writes what was counted first', async t => {
  const { clock, written, note } = start()
  await note()
  await note()
  clock.advance(60_000)
  await note()
  t.strictSame(
    written.map(({ details }) => details['count']),
    [undefined, 1, undefined],
  )
})

t.test('what the store did not take is counted on, and written later', async t => {
  const { clock, written, store, repeats, note } = start()
  await note()
  await note()
  clock.advance(60_000)
  store.fails = true
  await t.rejects(repeats.sweep())
  await t.rejects(note())
  store.fails = false
  await repeats.close()
  t.match(written.at(-1)?.details, { count: 1 })
})
