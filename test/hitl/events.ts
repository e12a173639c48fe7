import { createEventLog, type HitlEvent } from '../../src/hitl/events.ts'
import t from '../fixtures/tap.ts'

const clock = { now: () => 1_700_000_000_000 }
const silent = () => {}

t.test('a listener hears of what happens after it came, until it goes', async t => {
  const log = createEventLog({ clock, capacity: 10, report: silent })
  const heard: HitlEvent[] = []
  log.publish('pending', 'a', {})
  const { missed, close } = log.subscribe(event => heard.push(event))
  log.publish('denied', 'a', { by: 'r' })
  close()
  log.publish('pending', 'b', {})
  t.equal(missed, false)
  t.match(heard, [{ type: 'denied', hitlId: 'a', data: { by: 'r' }, at: clock.now() }])
  t.equal(heard.length, 1)
})

t.test('who comes back hears first what it missed', async t => {
  const log = createEventLog({ clock, capacity: 3, report: silent })
  const first: HitlEvent[] = []
  log.subscribe(event => first.push(event)).close
  for (const id of ['a', 'b', 'c', 'd']) log.publish('pending', id, {})
  const again: HitlEvent[] = []
  t.equal(log.subscribe(event => again.push(event), first[1]!.id).missed, false)
  log.publish('expired', 'a', {})
  t.same(
    again.map(event => event.hitlId),
    ['c', 'd', 'a'],
  )
})

t.test('who was away too long, or comes from another run, is told to read everything again', async t => {
  const log = createEventLog({ clock, capacity: 2, report: silent })
  const first: HitlEvent[] = []
  log.subscribe(event => first.push(event))
  for (const id of ['a', 'b', 'c', 'd']) log.publish('pending', id, {})
  const heard: HitlEvent[] = []
  t.equal(log.subscribe(event => heard.push(event), first[0]!.id).missed, true)
  t.equal(log.subscribe(event => heard.push(event), 'x-1').missed, true)
  t.equal(heard.length, 0)
})

t.test('who came when nothing had happened comes back with the newest id of then', async t => {
  const log = createEventLog({ clock, capacity: 2, report: silent })
  const before = log.subscribe(silent)
  before.close()
  for (const id of ['a', 'b']) log.publish('pending', id, {})
  const heard: HitlEvent[] = []
  const again = log.subscribe(event => heard.push(event), before.newest)
  t.match(again, { missed: false, newest: heard[1]?.id })
  t.same(
    heard.map(event => event.hitlId),
    ['a', 'b'],
  )
})

t.test('a listener that throws keeps nobody from hearing', async t => {
  const reports: string[] = []
  const log = createEventLog({ clock, capacity: 2, report: what => reports.push(what) })
  let heard = 0
  log.subscribe(() => {
    throw new TypeError('broken')
  })
  log.subscribe(() => heard++)
  log.publish('pending', 'a', {})
  t.equal(heard, 1)
  t.equal(reports.length, 1)
})
