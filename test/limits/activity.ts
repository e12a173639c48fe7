import fc from 'fast-check'
import t from 'tap'
import { createActivityLog } from '../../src/limits/activity.ts'
import type { ActivityDelta } from '../../src/limits/activity-delta.ts'
import { notesOf } from '../../src/threads/notes.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const noon = Date.UTC(2026, 0, 5, 12)

t.test('an agent not seen before has no activity', async t => {
  const activity = createActivityLog().of('a', noon)
  t.equal(activity.requestsLastMinute, 0)
  t.equal(activity.deniedLast10m, 0)
  t.equal(activity.hitlLast24h, 0)
  t.equal(activity.humanDeniedLast24h, 0)
  t.equal(activity.bytesToday, 0)
  t.equal(activity.medianBytesPerDay, 0)
  t.equal(activity.usualBodyBytes, 0)
  t.notOk(activity.hostSeen('x.example'))
})

t.test('requests are counted for a minute, agents apart', async t => {
  const log = createActivityLog()
  for (let index = 0; index < 5; index++) log.request('a', noon + index * 1_000)
  log.request('b', noon)
  t.equal(log.of('a', noon + 10_000).requestsLastMinute, 5)
  t.equal(log.of('b', noon + 10_000).requestsLastMinute, 1)
  t.equal(log.of('a', noon + 60_000).requestsLastMinute, 5, 'at least the whole window')
  t.equal(log.of('a', noon + 70_000).requestsLastMinute, 0)
})

t.test('denials are counted for ten minutes, reviews for a day', async t => {
  const log = createActivityLog()
  log.denied('a', noon)
  log.held('a', noon)
  log.humanDenied('a', noon)
  t.equal(log.of('a', noon + 9 * minute).deniedLast10m, 1)
  t.equal(log.of('a', noon + 12 * minute).deniedLast10m, 0)
  t.equal(log.of('a', noon + 23 * hour).hitlLast24h, 1)
  t.equal(log.of('a', noon + 23 * hour).humanDeniedLast24h, 1)
  t.equal(log.of('a', noon + 26 * hour).hitlLast24h, 0)
})

t.test('bytes are counted by day, and the usual day is the median of those before', async t => {
  const log = createActivityLog()
  for (const [index, bytes] of [100, 900, 200].entries()) {
    log.sent('a', { host: 'x.example', bytes }, noon + index * day)
  }
  log.sent('a', { host: 'x.example', bytes: 7_000 }, noon + 3 * day)
  const activity = log.of('a', noon + 3 * day)
  t.equal(activity.bytesToday, 7_000)
  t.equal(activity.medianBytesPerDay, 200)
  t.equal(log.of('a', noon + 4 * day).bytesToday, 0)
})

t.test('the usual body follows slowly', async t => {
  const log = createActivityLog()
  log.sent('a', { host: 'x.example', bytes: 1_000 }, noon)
  t.equal(log.of('a', noon).usualBodyBytes, 1_000)
  log.sent('a', { host: 'x.example', bytes: 2_000 }, noon)
  t.equal(log.of('a', noon).usualBodyBytes, 1_100)
  log.sent('a', { host: 'x.example', bytes: 0 }, noon)
  t.equal(log.of('a', noon).usualBodyBytes, 1_100, 'a request without a body tells nothing')
})

t.test('hosts are remembered, the oldest forgotten past the limit', async t => {
  const log = createActivityLog({ agents: 10, hostsPerAgent: 2 })
  for (const host of ['one', 'two', 'one', 'three']) log.sent('a', { host, bytes: 0 }, noon)
  const activity = log.of('a', noon)
  t.ok(activity.hostSeen('one'))
  t.ok(activity.hostSeen('three'))
  t.notOk(activity.hostSeen('two'))
})

t.test('agents past the limit push out the one that was idle longest', async t => {
  const log = createActivityLog({ agents: 2, hostsPerAgent: 2 })
  const later = noon + 61_000
  for (const [id, at] of [
    ['a', noon],
    ['b', noon],
    ['a', later],
    ['c', later],
  ] as const)
    log.request(id, at)
  t.equal(log.size, 2)
  t.equal(log.of('b', later).requestsLastMinute, 0)
  t.ok(log.of('a', later).requestsLastMinute >= 1)
  t.equal(log.of('c', later).requestsLastMinute, 1)
})

t.test('idle agents are swept, and a clock that goes back loses nothing', async t => {
  const log = createActivityLog()
  log.request('a', noon)
  log.request('a', noon - hour)
  t.equal(log.of('a', noon).requestsLastMinute, 2)
  log.sweep(noon + day)
  t.equal(log.size, 1)
  log.sweep(noon + 9 * day)
  t.equal(log.size, 0)
})

t.test('what a request has read stays as it was, whatever other requests do', async t => {
  const log = createActivityLog()
  log.request('a', noon)
  const read = log.of('a', noon)
  t.equal(read.requestsLastMinute, 1)
  t.notOk(read.hostSeen('x.example'))
  log.request('a', noon)
  log.sent('a', { host: 'x.example', bytes: 5 }, noon)
  t.equal(read.requestsLastMinute, 1)
  t.notOk(read.hostSeen('x.example'))
  t.equal(read.bytesToday, 5, 'first read now')
  t.match(log.of('a', noon), { requestsLastMinute: 2 })
  t.ok(log.of('a', noon).hostSeen('x.example'))
})

t.test('the total of a window is the sum of its buckets, however the gaps fall', async t => {
  const bucket = minute / 12
  const gap = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: bucket }), fc.integer({ min: 0, max: 3 * minute }))
  const times = (gaps: readonly number[]) =>
    gaps.map((_, at) => noon + gaps.slice(0, at + 1).reduce((a, b) => a + b, 0))
  fc.assert(
    fc.property(fc.array(gap, { maxLength: 60 }), gaps => {
      const log = createActivityLog()
      const seen: number[] = []
      for (const now of times(gaps)) {
        log.request('a', now)
        seen.push(Math.floor(now / bucket))
        const oldest = Math.floor(now / bucket) - 12
        if (log.of('a', now).requestsLastMinute !== seen.filter(place => place >= oldest).length) return false
      }
      return true
    }),
  )
  t.pass('holds')
})

t.test('others get what one agent did once, and its hosts again after a while', async t => {
  const waiting: ActivityDelta[] = []
  const log = createActivityLog(undefined, untold => waiting.push(untold))
  const told = () =>
    waiting.splice(0).flatMap(untold => {
      untold.end()
      return notesOf(untold)
    })
  const send = (bytes: number, now: number) => {
    log.request('a', now)
    log.sent('a', { host: 'x.example', bytes }, now)
  }
  send(0, noon)
  send(10, noon + 1)
  send(21, noon + 2)
  log.sent('b', { host: 'x.example', bytes: 0 }, noon)
  log.denied('b', noon)
  t.strictSame(told(), [
    [['request', 'a', noon + 2], 3],
    [['sent', 'a', noon + 2, 'x.example', 15], 1],
    [['sent', 'a', noon + 2, 'x.example', 16], 1],
    [['denied', 'b', noon], 1],
    [['sent', 'b', noon, 'x.example', 0], 1],
  ])
  send(0, noon + 3)
  t.strictSame(told(), [[['request', 'a', noon + 3], 1]], 'a host that is known, and no body')
  log.add('a', 'request', noon + 4, 1)
  log.add('a', { host: 'y.example', bytes: 7 }, noon + 4, 1)
  t.strictSame(told(), [], 'nothing of what others told')
  t.match(log.of('a', noon + 4), { requestsLastMinute: 5, bytesToday: 38 })
  send(0, noon + 2 * minute)
  t.match(told(), [[['request']], [['sent', 'a', noon + 2 * minute, 'x.example', 0], 1]])
})

t.test('what is published has the time of the latest event, though an older one is noted with it', async t => {
  const waiting: ActivityDelta[] = []
  const log = createActivityLog(undefined, untold => waiting.push(untold))
  log.humanDenied('a', noon - 5 * minute)
  log.request('a', noon)
  log.toolChanged('a', noon - 9 * minute)
  t.strictSame(waiting.flatMap(notesOf), [
    [['request', 'a', noon], 1],
    [['humanDenied', 'a', noon], 1],
    [['toolChanged', 'a', noon], 1],
  ])
})

t.test('what is received so many times counts as if it was received one by one', async t => {
  const once = createActivityLog()
  const oneByOne = createActivityLog()
  const body = { host: 'x.example', bytes: 900 }
  for (const log of [once, oneByOne]) log.sent('a', { host: 'x.example', bytes: 100 }, noon)
  once.add('a', body, noon, 4)
  once.add('a', 'denied', noon, 4)
  for (let time = 0; time < 4; time++) {
    oneByOne.sent('a', body, noon)
    oneByOne.denied('a', noon)
  }
  const [left, right] = [once.of('a', noon), oneByOne.of('a', noon)]
  t.equal(left.bytesToday, 3_700)
  t.equal(left.bytesToday, right.bytesToday)
  t.equal(left.deniedLast10m, right.deniedLast10m)
  t.equal(Math.round(left.usualBodyBytes), Math.round(right.usualBodyBytes))
})
