import fc from 'fast-check'
import type { Test } from 'tap'
import { grantOf, keyOf, type SpendAsk } from '../../../src/limits/spend-lease.ts'
import type { Store } from '../../../src/storage/store.ts'
import type { Engine } from './samples.ts'

const row = { budget: 'daily', holder: 'an owner with spaces', from: 1_000, until: 2_000 }
const key = keyOf(row)
const ask = (over: Partial<SpendAsk> = {}): SpendAsk => ({
  ...{ key, begins: false, spent: 0, estimated: 0, calls: 0 },
  ...{ keep: 0, reserved: 0, needed: 0, least: 0, ahead: 0, limit: 100, exact: false },
  ...over,
})

const amount = fc.integer({ min: 0, max: 60 })
const asks = fc.array(
  fc.record({
    ...{ spent: amount, estimated: amount, calls: fc.nat(2), keep: amount, reserved: amount, needed: amount },
    ...{ least: amount, ahead: amount, limit: fc.option(fc.nat(400), { nil: undefined }), exact: fc.boolean() },
    ...{ begins: fc.boolean(), gateways: fc.integer({ min: 1, max: 4 }) },
  }),
  { minLength: 1, maxLength: 8 },
)

/** @param other another store on the same data, as another gateway has it */
export function spend(t: Test, engine: Engine, other: Store): void {
  t.test('leases are those of grantOf, whatever was told before', async t => {
    const { spend: table } = await engine(t)
    let run = 0
    await fc.assert(
      fc.asyncProperty(asks, async list => {
        const key = keyOf({ ...row, holder: `holder ${++run}` })
        let [spent, told] = [0, 0]
        for (const { gateways, ...asked } of list) {
          const one = { ...asked, key }
          spent += Math.max(0, one.spent - (one.begins ? 0 : told))
          told = Math.max(one.begins ? 0 : told, one.spent)
          const state = { spent, others: 0, raised: 0 }
          const wanted = { key, leased: grantOf(one, state, gateways), ...state }
          const [got] = await table.lease([one], gateways)
          if (JSON.stringify(sorted(got)) !== JSON.stringify(sorted(wanted))) {
            throw new Error(`${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`)
          }
        }
      }),
      { numRuns: 30 },
    )
    t.pass('30 random sequences of asks')
  })

  t.test('T77 sums that no number holds stay readable, also when they are forfeited', async t => {
    const { spend: table } = await engine(t)
    const key = keyOf({ ...row, holder: 'much' })
    const much = Number.MAX_SAFE_INTEGER
    await table.lease([ask({ key, begins: true, limit: undefined })], 1)
    for (const spent of [much, 2 * much]) {
      const asked = ask({ key, spent, estimated: spent, keep: 4 * much, limit: undefined })
      t.match(await table.lease([asked], 1), [{ leased: much, spent: much }])
    }
    await table.forfeit('all')
    t.match(await table.lease([ask({ key, spent: much, limit: undefined })], 1), [{ spent: much }])
  })

  t.test('gateways that lease at the same time get no more than is left, and the last call', async t => {
    const { spend: table } = await engine(t)
    const keys = ['x', 'y'].map(holder => keyOf({ ...row, holder }))
    for (const at of [table, other.spend])
      await at.lease(
        keys.map(key => ask({ key, begins: true })),
        2,
      )
    const turns = Array.from({ length: 10 }, (_, n) => {
      const at = n % 2 === 0 ? table : other.spend
      const order = n % 3 === 0 ? keys : keys.toReversed()
      return at.lease(
        order.map(key => ask({ key, needed: 70, least: 70 })),
        2,
      )
    })
    await Promise.all(turns)
    const last = await Promise.all(
      [table, other.spend].map(at =>
        at.lease(
          keys.map(key => ask({ key, keep: 1 })),
          2,
        ),
      ),
    )
    for (const answers of last) for (const { others } of answers) t.ok(others <= 140, `${others}`)
  })

  t.test('amounts beyond any limit, and parts of a token, harm no other key', async t => {
    const { spend: table } = await engine(t)
    const huge = ask({ begins: true, needed: 1e30, least: 1e30, ahead: 1e30 })
    const second = ask({ key: keyOf({ ...row, holder: 'z' }), begins: true, needed: 5, least: 5 })
    const answers = await table.lease([huge, second], 1)
    t.match(
      answers.find(({ key }) => key === second.key),
      { leased: 5 },
    )
    t.match(await table.lease([ask({ spent: 2.5 }), { ...second, begins: false, needed: 7 }], 1), { length: 2 })
  })

  t.test('a gateway that comes back after its lease was forfeited is not charged twice', async t => {
    const { spend: table } = await engine(t)
    await table.lease([ask({ begins: true, needed: 30, least: 30 })], 1)
    await table.lease([ask({ spent: 20, keep: 10, reserved: 10 })], 1)
    t.equal(await table.forfeit('all'), 1)
    t.match(await table.lease([ask({ spent: 25 })], 1), [{ spent: 30 }], 'of what it had leased')
    t.match(await table.lease([ask({ spent: 40 })], 1), [{ spent: 40 }])
  })

  t.test('spending is added once, whatever answers are lost, and leases end at the limit', async t => {
    const { spend: table } = await engine(t)
    const first = ask({ begins: true, needed: 10, least: 10, ahead: 400 })
    const granted = [{ key, leased: 10 + 22, spent: 0, others: 0, raised: 0 }]
    t.strictSame(await table.lease([first], 1), granted, 'ahead: a quarter of what is left')
    t.strictSame(await table.lease([first], 1), granted)
    const told = ask({ spent: 60, estimated: 5, calls: 3, keep: 7, reserved: 7 })
    for (let asks = 0; asks < 2; asks++) t.match(await table.lease([told], 1), [{ leased: 7, spent: 60 }])
    const last = ask({ spent: 90, calls: 4, needed: 50, least: 50 })
    t.match(await table.lease([last], 1), [{ leased: 50, spent: 90 }], 'the last call passes')
    t.match(await table.lease([ask({ spent: 140, needed: 1, least: 1 })], 1), [{ leased: 0, spent: 140 }])
  })

  t.test('with exact limits no more is leased than is left', async t => {
    const { spend: table } = await engine(t)
    const asked = ask({ begins: true, exact: true, needed: 150, least: 60 })
    t.match(await table.lease([asked], 1), [{ leased: 100 }])
    t.match(await table.lease([{ ...asked, least: 150 }], 1), [{ leased: 0 }], 'no call fits')
  })

  t.test('what was leased and never told counts as spent once its gateway is gone', async t => {
    const { spend: table } = await engine(t)
    const other = ask({ key: keyOf({ ...row, holder: 'b' }), begins: true })
    await table.lease([ask({ begins: true, needed: 30, least: 30 }), other], 1)
    await table.lease([ask({ spent: 20, keep: 10, reserved: 10 })], 1)
    t.equal(await table.forfeit(['another']), 0)
    t.equal(await table.forfeit('all'), 1)
    t.equal(await table.forfeit('all'), 0)
    t.match(await table.lease([ask({ begins: true })], 1), [{ leased: 0, spent: 30, others: 0 }])
  })

  t.test('people are told once of each level, by one gateway', async t => {
    const { spend: table, audit } = await engine(t)
    await table.lease([ask({ begins: true })], 1)
    const entry = { at: 1, actor: 'gateway', action: 'budget.warned', subject: 'daily', requestId: null, details: {} }
    const event = { type: 'budgetWarned', at: 1, hitlId: null, data: { agentId: 'a' } } as const
    const tell = (level: 1 | 2, at = table) => at.notify({ ...row, level }, entry, event)
    const both = await Promise.all([tell(1), tell(1, other.spend)])
    t.strictSame(both.sort(), [false, true])
    t.equal(await tell(2), true)
    t.equal(await tell(1), false, 'it is used up: nobody is warned any more')
    t.equal((await audit.list({ page: 1, pageSize: 10 }, { action: 'budget.warned' })).totalCount, 2)
  })

  t.test('a raise counts once in its window, and all raises add no more than they may', async t => {
    const { spend: table, audit } = await engine(t)
    const entry = { at: 1, actor: 'a', action: 'budget.raise', subject: 'daily', requestId: null, details: {} }
    const raise = (id: string, amount: number, at = table) => at.raise({ ...row, id, amount, max: 100 }, entry)
    t.equal(await raise('one', 60), 'raised')
    t.equal(await raise('one', 60), 'repeated')
    t.equal(await raise('two', 41), 'tooMuch')
    t.equal(await raise('two', 10), 'raised', 'one that was refused may come again')
    const many = await Promise.all(
      Array.from({ length: 8 }, (_, n) => raise(`many ${n % 4}`, 10, n < 4 ? table : other.spend)),
    )
    t.equal(many.filter(outcome => outcome === 'raised').length, 3, 'at once, in two gateways')
    t.match(await table.find([row]), [{ raised: 100, spent: 0 }])
    t.match(await table.lease([ask({ begins: true, needed: 200, least: 200 })], 1), [{ leased: 200, raised: 100 }])
    t.match(await table.find([{ ...row, from: 2_000, until: 3_000 }]), [])
    t.equal((await audit.list({ page: 1, pageSize: 10 }, { action: 'budget.raise' })).totalCount, 5)
    await table.prune(2_001)
    t.strictSame(await table.find([row]), [])
  })

  t.test('rows of a window are listed with what is leased, and summed up', async t => {
    const { spend: table } = await engine(t)
    const rowOf = (holder: string, over: object = {}) => ({ ...row, holder, ...over })
    const used = [
      { ...rowOf('small'), spent: 5, estimated: 1, calls: 2, leased: 30 },
      { ...rowOf('large'), spent: 50, estimated: 0, calls: 9, leased: 0 },
      { ...rowOf('large', { from: 2_000, until: 3_000 }), spent: 7, estimated: 0, calls: 1, leased: 0 },
      { ...rowOf('large', { budget: 'other' }), spent: 9, estimated: 0, calls: 1, leased: 0 },
    ]
    for (const { spent, estimated, calls, leased, ...of } of used) {
      const first = ask({ key: keyOf(of), begins: true, needed: leased, least: leased })
      await table.lease([first], 1)
      await table.lease([{ ...first, begins: false, spent, estimated, calls, keep: leased, needed: 0 }], 1)
    }
    const shown = used.map(one => ({ ...one, raised: 0 }))
    const page = (page: number) => table.list(row, { page, pageSize: 1 })
    t.match(await page(1), { items: [shown[1]], totalCount: 2 })
    t.match(await page(2), { items: [shown[0]], totalCount: 2 })
    t.match(await page(3), { items: [], totalCount: 2 })
    t.match(await table.find([rowOf('small'), rowOf('nobody')]), [shown[0]])
    t.strictSame(await table.find([]), [])
    const windows = [
      { ...row, limit: 40 },
      { budget: 'other', from: 1_000, limit: undefined },
      { budget: 'unused', from: 1_000, limit: 1 },
    ]
    const rows = [rowOf('large'), rowOf('nobody')]
    const { totals, rows: found } = await table.totals(windows, rows)
    t.match(
      totals.toSorted((left, right) => right.spent - left.spent),
      [
        { budget: 'daily', from: 1_000, spent: 55, estimated: 1, calls: 11, holders: 2, highestShare: 1.25 },
        { budget: 'other', spent: 9, holders: 1, highestShare: null },
      ],
    )
    t.equal(totals.length, 2)
    t.match(found, [{ ...rowOf('large'), spent: 50, raised: 0 }])
    t.equal(found.length, 1)
    t.strictSame(await table.totals([], []), { totals: [], rows: [] })
    t.match(
      await table.totals([{ ...row, limit: 0 }], []),
      { totals: [{ highestShare: 1 }] },
      'there is nothing to spend',
    )
    const entry = { at: 1, actor: 'a', action: 'budget.raise', subject: 'daily', requestId: null, details: {} }
    await table.raise({ ...rowOf('large'), id: 'more', amount: 60, max: 60 }, entry)
    t.match(await table.totals([{ ...row, limit: 40 }], []), { totals: [{ highestShare: 0.5 }] }, 'a raise counts')
  })

  t.test('windows that are over are removed', async t => {
    const { spend: table } = await engine(t)
    await table.lease(
      [ask({ begins: true }), ask({ key: keyOf({ ...row, until: 9_000, from: 3_000 }), begins: true })],
      1,
    )
    await table.lease([ask({ spent: 5 })], 1)
    await table.prune(2_000)
    t.match(await table.lease([ask({ spent: 5 })], 1), [{ spent: 5 }])
    await table.prune(2_001)
    t.match(await table.lease([ask({ begins: true })], 1), [{ spent: 0 }])
  })
}

const sorted = (of: object | undefined) => Object.entries(of ?? {}).sort()
