import { deepStrictEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import type { Test } from 'tap'
import { verifyTrail } from '../../../src/audit/trail.ts'
import { genesis, hashOf } from '../../../src/storage/chain.ts'
import type { AuditEntry } from '../../../src/storage/store.ts'
import { type Engine, entry, trail } from './samples.ts'

const kept = (text: string) => text.toWellFormed().replaceAll('\0', '\ufffd')

/** What a record keeps of an entry: well-formed text without U+0000, and details as JSON has them. */
function toldOf({ at, actor, action, subject, requestId, details }: AuditEntry) {
  return {
    at,
    actor: kept(actor),
    action: kept(action),
    subject: kept(subject),
    requestId: requestId === null ? null : kept(requestId),
    details: JSON.parse(JSON.stringify(details)),
  }
}

export function audit(t: Test, engine: Engine): void {
  t.test('records are numbered without a gap and each names the hash of the one before', async t => {
    const store = await engine(t)
    await Promise.all(['a', 'b', 'c'].map(action => store.audit.append(entry(action))))
    const appended = await trail(store)
    t.strictSame(
      appended.map(record => record.seq),
      [1, 2, 3],
    )
    t.strictSame(appended.map(record => record.action).sort(), ['a', 'b', 'c'])
    t.equal(appended[0]?.previous, '0'.repeat(64))
    t.equal(appended[2]?.previous, appended[1]?.hash)
    t.match(appended[0]?.hash, /^[0-9a-f]{64}$/)
  })

  t.test('the list is newest first, in pages, with the count of all that match', async t => {
    const store = await engine(t)
    for (let n = 1; n <= 5; n++) {
      const subject = n % 2 === 0 ? 'even' : 'odd'
      await store.audit.append(entry(`action ${n}`, { at: n * 10, actor: `actor ${n}`, subject }))
    }
    const list = async (page: number, filter?: Parameters<typeof store.audit.list>[1]) => {
      const { items, totalCount } = await store.audit.list({ page, pageSize: 2 }, filter)
      return [items.map(record => record.seq), totalCount]
    }
    t.strictSame(await list(1), [[5, 4], 5])
    t.strictSame(await list(3), [[1], 5])
    t.strictSame(await list(4), [[], 5])
    t.strictSame(await list(2, { subject: 'odd' }), [[1], 3])
    t.strictSame(await list(1, { actor: 'actor 4' }), [[4], 1])
    t.strictSame(await list(1, { action: 'action 1' }), [[1], 1])
    t.strictSame(await list(1, { from: 20, to: 40 }), [[3, 2], 2], 'from is included, to is not')
    t.strictSame(await list(1, { subject: 'odd', from: 50 }), [[5], 1])
  })

  t.test('the store verifies stretches of the trail from any link on', async t => {
    const store = await engine(t)
    const start = { seq: 0, hash: genesis }
    t.strictSame(await store.audit.verify(start, 2), { last: start, isEnd: true })
    for (const action of ['a', 'b', 'c']) await store.audit.append(entry(action))
    const [, second, third] = await trail(store)
    const link = { seq: second!.seq, hash: second!.hash }
    t.strictSame(await store.audit.verify(start, 2), { last: link, isEnd: false })
    t.strictSame(await store.audit.verify(link, 2), { last: { seq: 3, hash: third!.hash }, isEnd: true })
    const other = { firstBroken: 2, why: 'record 2 was verified before, and is another one' }
    t.strictSame(await store.audit.verify({ seq: 2, hash: genesis }, 2), other, 'the trail was written again')
    const missing = { firstBroken: 4, why: 'record 4 was verified before, and is missing' }
    t.strictSame(await store.audit.verify({ seq: 4, hash: genesis }, 2), missing, 'the trail was cut off')
    t.match(await store.audit.verify({ seq: -5, hash: genesis }, 2), { firstBroken: -5, why: /missing/ })
  })

  t.test('how far a verification has got is kept, once', async t => {
    const store = await engine(t)
    t.equal(await store.audit.kept(), undefined)
    for (const bytes of [[1, 0, 255], [2]]) {
      await store.audit.keep(new Uint8Array(bytes))
      t.strictSame(await store.audit.kept(), new Uint8Array(bytes))
    }
  })

  t.test('the trail is read on from any record', async t => {
    const store = await engine(t)
    for (const action of ['a', 'b', 'c']) await store.audit.append(entry(action))
    t.strictSame(
      (await store.audit.after(1, 1)).map(record => record.seq),
      [2],
    )
    t.strictSame(await store.audit.after(3, 10), [])
  })

  t.test('whatever text and details an entry has, it reads back as it was hashed', async t => {
    const store = await engine(t)
    const text = fc.string({ unit: 'binary', maxLength: 20 })
    const entries = fc.record({
      at: fc.integer({ min: 0, max: 2 ** 52 }),
      actor: text,
      action: text,
      subject: text,
      requestId: fc.option(text),
      details: fc.dictionary(text, fc.anything({ maxDepth: 3 })),
    })
    let last = { seq: 0, hash: genesis }
    await fc.assert(
      fc.asyncProperty(entries, async given => {
        const before = last
        const isStored = await store.audit.append(given).then(
          () => true,
          () => false,
        )
        const records = await store.audit.after(before.seq, 2)
        // Thrown, so that the entry is made smaller and printed.
        equal(records.length, isStored ? 1 : 0)
        for (const record of records) {
          const { previous, hash, ...told } = record
          deepStrictEqual(told, { ...toldOf(given), seq: before.seq + 1 })
          equal(previous, before.hash)
          equal(hash, hashOf(record))
          last = record
        }
      }),
      { numRuns: 150 },
    )
    t.match(await verifyTrail(store.audit), { ok: true, entries: last.seq })
  })
}
