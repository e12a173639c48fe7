/** Threat T01 of SECURITY.md. */

import t from 'tap'
import { createVerification } from '../../src/audit/verification.ts'
import { faultOf, genesis, hashOfStored, link } from '../../src/storage/chain.ts'
import type { AuditRow } from '../../src/storage/schema.ts'
import type { ChainLink } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'

/** Entries of a stretch. */
const stretch = 250
const hour = 3_600_000

/** A trail, and the gateways that verify it: each call of `gateway` starts another one. */
function start() {
  const clock = createClock()
  const records: AuditRow[] = []
  const asked: number[] = []
  const complaints: unknown[] = []
  const notes: Uint8Array[] = []
  /** What a stretch costs, milliseconds. */
  let costMs = 0
  const audit = {
    async verify(from: ChainLink, limit: number) {
      asked.push(from.seq)
      clock.advance(costMs)
      const before = records[from.seq - 1]
      if (from.seq > 0 && before?.hash !== from.hash)
        return { firstBroken: from.seq, why: `record ${from.seq} is another` }
      let last = from
      const read = records.slice(from.seq, from.seq + limit)
      for (const record of read) {
        const why = faultOf(record, last, hashOfStored(record))
        if (why !== undefined) return { firstBroken: last.seq + 1, why }
        last = { seq: record.seq, hash: record.hash }
      }
      return { last, isEnd: read.length < limit }
    },
    kept: async () => notes.at(-1),
    keep: async (note: Uint8Array) => void notes.push(note),
  }
  const log = { error: (fields: unknown) => void complaints.push(fields) }
  /** A seal that shows whether something was sealed. */
  const seal = {
    close: (text: string) => Buffer.from(`sealed ${text}`),
    open: (sealed: Uint8Array) => /^sealed (.*)$/s.exec(Buffer.from(sealed).toString())?.[1],
  }
  return {
    ...{ clock, records, asked, complaints, notes },
    cost(ms: number) {
      costMs = ms
    },
    write(count: number) {
      for (let n = 0; n < count; n++) {
        const entry = { at: n, actor: 'a', action: 'x', subject: 's', requestId: null, details: {} }
        records.push(link(entry, records.at(-1)))
      }
    },
    gateway: (leads = () => true, worked?: () => number) =>
      createVerification({ store: { audit }, clock, log, leads, seal, worked }),
  }
}

t.test('a long trail is verified in stretches, then only what is new, and once an hour all of it', async t => {
  const { clock, records, asked, write, gateway } = start()
  write(600)
  const verification = gateway()
  t.match(verification.state(), { status: 'running', verifiedTo: 0, lastHash: genesis, verifiedAt: null, reached: 0 })
  await verification.step()
  t.strictSame(asked, [0, 250, 500])
  const found = { status: 'intact', verifiedTo: 600, lastHash: records[599]!.hash, verifiedAt: clock.now() }
  t.match(verification.state(), { ...found, reached: 600 })
  await verification.step()
  t.equal(asked.length, 3, 'nothing is due')
  write(1)
  clock.advance(10_000)
  await verification.step()
  t.equal(asked[3], 600)
  t.equal(verification.state().verifiedTo, 601)
  clock.advance(hour)
  await verification.step()
  t.equal(asked[4], 0)
})

t.test('it works at most a twentieth of the time, and its pass ends however long it takes', async t => {
  const { clock, asked, write, gateway, cost } = start()
  write(5_000)
  cost(10)
  const verification = gateway()
  await verification.step()
  const first = asked.length
  const begun = clock.now()
  for (let steps = 0; steps < 100 && verification.state().status === 'running'; steps++) {
    clock.advance(1_000)
    await verification.step()
  }
  const worked = (asked.length - first) * 10
  const share = worked / (clock.now() - begun)
  t.ok(share > 0.04 && share < 0.06, `${share} of the time`)
  t.strictSame(
    asked,
    Array.from({ length: 21 }, (_, n) => n * stretch),
    'each stretch once',
  )
})

t.test('the time in which a database answers is no work, and is bounded by itself', async t => {
  const { clock, asked, write, gateway, cost } = start()
  write(100_000)
  // The thread works for a millisecond at each stretch.
  const verification = gateway(undefined, () => asked.length)
  const stretchesOf = async (answerMs: number) => {
    cost(0)
    await verification.step()
    cost(answerMs)
    const before = asked.length
    clock.advance(1_000)
    await verification.step()
    return asked.length - before
  }
  t.equal(await stretchesOf(4), 50, 'a twentieth of the time')
  t.equal(await stretchesOf(25), 10, 'a quarter of the time with the waits')
})

t.test('a pass that takes longer than an hour goes on', async t => {
  const { clock, asked, write, gateway, cost } = start()
  write(1_000)
  cost(1_000)
  const verification = gateway()
  for (let n = 0; n < 5; n++) {
    await verification.step()
    clock.advance(hour)
  }
  t.strictSame(asked, [0, 250, 500, 750, 1_000])
  t.match(verification.state(), { status: 'intact', verifiedTo: 1_000 })
})

t.test('a gateway that starts again goes on where it was kept, for a day', async t => {
  const { clock, asked, write, gateway, cost } = start()
  write(2_000)
  // One stretch a step.
  cost(1_000)
  const first = gateway()
  await first.step()
  await gateway().step()
  t.strictSame(asked, [0, 0], 'nothing was kept')
  clock.advance(30_000)
  await first.step()
  t.equal(first.state().reached, 500)
  await gateway().step()
  t.strictSame(asked.slice(2), [250, 500])
  clock.advance(24 * hour)
  await gateway().step()
  t.equal(asked.at(-1), 0)
})

t.test('who writes to the store cannot say that something was verified', async t => {
  const { records, notes, write, gateway, clock } = start()
  write(2_000)
  const at = { seq: 1_999, hash: records[1_998]!.hash }
  notes.push(Buffer.from(JSON.stringify({ at, begun: clock.now(), state: {} })))
  records[100] = { ...records[100]!, actor: 'somebody else' }
  const verification = gateway()
  await verification.step()
  t.match(verification.state(), { status: 'broken', firstBroken: 101 })
})

t.test('what was changed behind the place is found by the next pass, also after a start', async t => {
  const { records, write, gateway, clock } = start()
  write(1_000)
  await gateway().step()
  records[6] = { ...records[6]!, actor: 'somebody else' }
  const verification = gateway()
  await verification.step()
  t.match(verification.state(), { status: 'intact', verifiedTo: 1_000 })
  clock.advance(hour)
  await verification.step()
  t.match(verification.state(), { status: 'broken', firstBroken: 7 })
})

t.test('a trail that was cut off, or written again, is reported after a start', async t => {
  const { records, write, gateway, complaints } = start()
  write(1_000)
  await gateway().step()
  records.length = 900
  const verification = gateway()
  await verification.step()
  t.match(verification.state(), { status: 'broken', firstBroken: 1_000 })
  t.equal(complaints.length, 1)
})

t.test('an entry that was changed is named and reported once, until the trail is whole again', async t => {
  const { clock, records, complaints, write, gateway } = start()
  write(20)
  const verification = gateway()
  await verification.step()
  t.equal(verification.state().status, 'intact')
  const before = records[6]!
  records[6] = { ...before, actor: 'somebody else' }
  for (let pass = 0; pass < 2; pass++) {
    clock.advance(hour)
    await verification.step()
    await verification.step()
    t.match(verification.state(), { status: 'broken', firstBroken: 7, why: /record 7 was changed/ })
  }
  t.strictSame(complaints, [{ reason: 'record 7 was changed after it was written' }])
  records[6] = before
  clock.advance(hour)
  await verification.step()
  t.match(verification.state(), { status: 'intact', firstBroken: null, why: null })
})

t.test('of several gateways one verifies, the others show what it found, and one of them goes on', async t => {
  const { clock, asked, write, gateway } = start()
  write(600)
  let isFirst = true
  const first = gateway(() => isFirst)
  const second = gateway(() => !isFirst)
  await first.step()
  const before = asked.length
  clock.advance(30_000)
  await second.step()
  t.equal(asked.length, before)
  t.strictSame(second.state(), first.state())
  isFirst = false
  write(1)
  await first.step()
  await second.step()
  t.strictSame(asked.slice(before), [600])
})

t.test('two steps do not overlap, and a store that fails is asked again', async t => {
  const clock = createClock()
  const { promise, reject } = Promise.withResolvers<never>()
  let calls = 0
  const verify = () => {
    calls += 1
    return calls === 1 ? promise : Promise.resolve({ last: { seq: 0, hash: genesis }, isEnd: true })
  }
  const audit = { verify, kept: async () => undefined, keep: async () => {} }
  const seal = { close: (text: string) => Buffer.from(text), open: () => undefined }
  const verification = createVerification({ store: { audit }, clock, log: { error() {} }, leads: () => true, seal })
  const first = verification.step()
  await new Promise(setImmediate)
  await verification.step()
  t.equal(calls, 1)
  reject(new TypeError('the store is gone'))
  await t.rejects(first)
  await verification.step()
  t.equal(verification.state().status, 'intact')
})
