import type { Test } from 'tap'
import { keyOf, type SpendAsk } from '../../../src/limits/spend-lease.ts'
import type { Engine } from './samples.ts'

const row = { budget: 'daily', holder: 'an owner with spaces', from: 1_000, until: 2_000 }
const key = keyOf(row)
const ask = (over: Partial<SpendAsk> = {}): SpendAsk => ({
  ...{ key, begins: false, spent: 0, estimated: 0, calls: 0 },
  ...{ keep: 0, reserved: 0, needed: 0, least: 0, ahead: 0, limit: 100, exact: false },
  ...over,
})

export function spend(t: Test, engine: Engine): void {
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
    const asked = ask({ begins: true, exact: true, needed: 150, least: 150 })
    t.match(await table.lease([asked], 1), [{ leased: 100 }])
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
