import t from 'tap'
import { createEventLog, type HitlEvent } from '../../src/hitl/events.ts'
import { createTestLog, eventTime, stored } from '../fixtures/events.ts'

const silent = () => {}

t.test('a listener gets what happens after it came, until it goes', async t => {
  const log = createTestLog({ capacity: 10 })
  const heard: HitlEvent[] = []
  log.publish('pending', 'a', {})
  const { missed, close } = log.subscribe(event => heard.push(event))
  log.publish('denied', 'a', { by: 'r' })
  close()
  log.publish('pending', 'b', {})
  t.equal(missed, false)
  t.match(heard, [{ type: 'denied', hitlId: 'a', data: { by: 'r' }, at: eventTime }])
  t.equal(heard.length, 1)
})

t.test('a reader that comes back gets first what it missed', async t => {
  const log = createTestLog({ capacity: 3 })
  const first: HitlEvent[] = []
  log.subscribe(event => first.push(event)).close
  for (const id of ['a', 'b', 'c', 'd']) log.publish('pending', id, {})
  const again: HitlEvent[] = []
  t.equal(log.subscribe(event => again.push(event), first[1]!.id).missed, false)
  log.publish('expired', 'a', {})
  t.strictSame(
    again.map(event => event.hitlId),
    ['c', 'd', 'a'],
  )
})

t.test('a reader that was away too long, or comes from another run, is asked to read everything again', async t => {
  const log = createTestLog({ capacity: 2 })
  const first: HitlEvent[] = []
  log.subscribe(event => first.push(event))
  for (const id of ['a', 'b', 'c', 'd']) log.publish('pending', id, {})
  const heard: HitlEvent[] = []
  t.equal(log.subscribe(event => heard.push(event), first[0]!.id).missed, true)
  t.equal(log.subscribe(event => heard.push(event), 'x-1').missed, true)
  t.equal(heard.length, 0)
})

t.test('who came when nothing had happened comes back with the newest id of then', async t => {
  const log = createTestLog({ capacity: 2 })
  const before = log.subscribe(silent)
  before.close()
  for (const id of ['a', 'b']) log.publish('pending', id, {})
  const heard: HitlEvent[] = []
  const again = log.subscribe(event => heard.push(event), before.newest)
  t.match(again, { missed: false, newest: heard[1]?.id })
  t.strictSame(
    heard.map(event => event.hitlId),
    ['a', 'b'],
  )
})

t.test('a listener that throws keeps nobody from hearing', async t => {
  const reports: string[] = []
  const log = createTestLog({ report: what => reports.push(what) })
  let heard = 0
  log.subscribe(() => {
    throw new TypeError('broken')
  })
  log.subscribe(() => heard++)
  log.publish('pending', 'a', {})
  t.equal(heard, 1)
  t.equal(reports.length, 1)
})

t.test('an id of another gateway holds in this one, also when that one was ahead', async t => {
  const log = createTestLog()
  const first: HitlEvent[] = []
  log.subscribe(event => first.push(event))
  log.publish('pending', 'a')
  const behind = createTestLog()
  const heard: HitlEvent[] = []
  t.equal(behind.subscribe(event => heard.push(event), first[0]!.id).missed, false)
  behind.publish('pending', 'a')
  behind.publish('denied', 'a')
  t.strictSame(
    heard.map(({ type }) => type),
    ['denied'],
  )
})

t.test(
  'after a gap in the feed each event is told once and in order, or readers are told that some are lost',
  async t => {
    const log = createTestLog()
    const heard: (string | null)[] = []
    let missed = 0
    log.subscribe(
      ({ hitlId }) => heard.push(hitlId),
      undefined,
      () => missed++,
    )
    log.publish('pending', 'a')
    const all = ['a', 'b', 'c'].map((id, index) => stored(index + 1, 'pending', id))
    log.feed.load({ epoch: 'test', after: 0, events: all })
    log.feed.change('', stored(4, 'pending', 'd'))
    t.strictSame(heard, ['a', 'b', 'c', 'd'])
    t.equal(missed, 0)
    log.feed.load({ epoch: 'test', after: 6, events: [stored(7, 'pending', 'g')] })
    log.feed.load({ epoch: 'another', after: 0, events: [stored(7, 'pending', 'g')] })
    log.feed.change('', stored(8, 'pending', 'h'))
    t.strictSame(heard, ['a', 'b', 'c', 'd', 'h'])
    t.equal(missed, 2)
  },
)

t.test('at the start readers come back with ids from before, and nobody gets old events', async t => {
  const log = createEventLog({ capacity: 10, report: silent, describe: ({ data }) => data })
  const heard: HitlEvent[] = []
  log.subscribe(event => heard.push(event))
  log.load({ epoch: 'e', after: 3, events: [4, 6].map(seq => stored(seq, 'denied', `h${seq}`)) })
  t.equal(heard.length, 0)
  const again: HitlEvent[] = []
  t.equal(log.subscribe(event => again.push(event), 'e-4').missed, false)
  t.match(again, [{ id: 'e-6', type: 'denied' }])
  t.equal(log.subscribe(silent, 'e-2').missed, true)
})

t.test('events name agents, and one that cannot be read is left out', async t => {
  const reports: string[] = []
  const log = createTestLog({ names: new Map([['r', 'Rita']]), report: what => reports.push(what) })
  const heard: HitlEvent[] = []
  log.subscribe(event => event.data && heard.push(event))
  log.publish('denied', 'a', { by: 'r' })
  log.publish('quarantined', null, { agentId: 'r', cause: 'trust' })
  log.publish('toolChanged', null, { agentId: 'r', server: 's', tools: ['x', 'y'], count: 2 })
  log.feed.change('', { ...stored(4, 'pending', 'b'), data: { agentId: 'r' } })
  t.match(
    heard.map(({ data }) => data),
    [{ byName: 'Rita' }, { agentName: 'Rita', cause: 'trust' }, { agentName: 'Rita', cause: 's: x, y' }],
  )
  t.equal(heard.length, 3)
  t.equal(reports.length, 1)
})

t.test('the text of an event for reviewers is made once, for the first who reads it', async t => {
  let made = 0
  const describe = () => ({ number: ++made })
  const log = createEventLog({ capacity: 10, report: silent, describe })
  log.load({ epoch: 'e', after: 0, events: [] })
  log.subscribe(silent)
  log.change('', stored(1, 'pending', 'a'))
  t.equal(made, 0)
  const heard: HitlEvent[] = []
  log.subscribe(event => heard.push(event), 'e-0')
  t.strictSame([heard[0]?.data, heard[0]?.data], [{ number: 1 }, { number: 1 }])
})
