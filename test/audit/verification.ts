/** Threat T01 of SECURITY.md. */

import t from 'tap'
import { createVerification } from '../../src/audit/verification.ts'
import { faultOf, genesis, hashOf, link } from '../../src/storage/chain.ts'
import type { AuditRecord, Link } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'

function start() {
  const clock = createClock()
  const records: AuditRecord[] = []
  const asked: [seq: number, limit: number][] = []
  const complaints: unknown[] = []
  const audit = {
    async verify(from: Link, limit: number) {
      asked.push([from.seq, limit])
      let last = from
      const read = records.slice(from.seq, from.seq + limit)
      for (const record of read) {
        const why = faultOf(record, last, hashOf(record))
        if (why !== undefined) return { firstBroken: last.seq + 1, why }
        last = { seq: record.seq, hash: record.hash }
      }
      return { last, isEnd: read.length < limit }
    },
  }
  const log = { error: (fields: unknown) => void complaints.push(fields) }
  const write = (count: number) => {
    for (let n = 0; n < count; n++) {
      const entry = { at: n, actor: 'a', action: 'x', subject: 's', requestId: null, details: {} }
      records.push(link(entry, records.at(-1)))
    }
  }
  return {
    clock,
    records,
    asked,
    complaints,
    write,
    verification: createVerification({ store: { audit }, clock, log }),
  }
}

t.test('a long trail is verified in stretches, then only what is new, and once an hour all of it', async t => {
  const { clock, records, asked, write, verification } = start()
  write(600)
  t.match(verification.state(), { status: 'running', verifiedTo: 0, lastHash: genesis, verifiedAt: null })
  await verification.step()
  await verification.step()
  t.equal(verification.state().status, 'running')
  await verification.step()
  t.match(verification.state(), {
    status: 'intact',
    verifiedTo: 600,
    lastHash: records[599]!.hash,
    verifiedAt: clock.now(),
  })
  await verification.step()
  t.equal(asked.length, 3, 'nothing is due')
  write(1)
  clock.advance(10_000)
  await verification.step()
  t.strictSame(asked[3], [600, 250])
  t.equal(verification.state().verifiedTo, 601)
  clock.advance(3_600_000)
  await verification.step()
  t.strictSame(asked[4], [0, 250])
})

t.test('an entry that was changed is named and told once, also after the first pass', async t => {
  const { clock, records, complaints, write, verification } = start()
  write(20)
  await verification.step()
  t.equal(verification.state().status, 'intact')
  records[6] = { ...records[6]!, actor: 'somebody else' }
  for (let pass = 0; pass < 2; pass++) {
    clock.advance(3_600_000)
    await verification.step()
    await verification.step()
    t.match(verification.state(), { status: 'broken', firstBroken: 7, why: /record 7 was changed/ })
  }
  t.strictSame(complaints, [{ reason: 'record 7 was changed after it was written' }])
})

t.test('two steps do not overlap, and a store that fails is asked again', async t => {
  const clock = createClock()
  const { promise, reject } = Promise.withResolvers<never>()
  let calls = 0
  const verify = () => {
    calls += 1
    return calls === 1 ? promise : Promise.resolve({ last: { seq: 0, hash: genesis }, isEnd: true })
  }
  const verification = createVerification({ store: { audit: { verify } }, clock, log: { error() {} } })
  const first = verification.step()
  await verification.step()
  t.equal(calls, 1)
  reject(new TypeError('the store is gone'))
  await t.rejects(first)
  await verification.step()
  t.equal(verification.state().status, 'intact')
})
