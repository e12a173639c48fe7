/** When people are told that a budget is spent. */
import t from 'tap'
import { createBudgetNotices } from '../../src/budgets/notices.ts'
import { createBudgetRule } from '../../src/budgets/rules.ts'
import type { BudgetSettings } from '../../src/config/budgets.ts'
import { keyOf } from '../../src/limits/spend-lease.ts'
import type { SpendTable } from '../../src/storage/store.ts'

const settings: BudgetSettings = {
  ...{ Name: 'daily', Unit: 'Money', Limit: 10, Per: 'Day', TimeZone: 'UTC', AtLimit: 'Deny', Reserve: 50, WarnAt: 80 },
  ...{ Exact: false, Of: 'Agent', Agents: [], Owners: [], Policies: [], Hosts: [], Models: [] },
}
const key = keyOf({ budget: 'daily', holder: 'bot', from: 0, until: 86_400_000 })

function open(over: Partial<BudgetSettings> = {}) {
  const told: Parameters<SpendTable['notify']>[] = []
  const failures: unknown[] = []
  const store = { fails: false }
  const notice = createBudgetNotices({
    ruleOf: () => createBudgetRule({ ...settings, ...over }),
    currency: 'EUR',
    clock: { now: () => 1_000 },
    store: {
      spend: {
        async notify(...what) {
          if (store.fails) throw new Error('the store is away')
          told.push(what)
          return true
        },
      },
    },
    report: what => failures.push(what),
  })
  const spend = async (spent: number, raised = 0) => {
    notice(key, { spent: spent * 1e9, raised: raised * 1e9 })
    await new Promise(setImmediate)
  }
  return { told, failures, store, spend, types: () => told.map(([, , { type }]) => type) }
}

t.test('at 80 percent, and when all is spent, once each', async t => {
  const { spend, types, told } = open()
  for (const spent of [1, 7.99, 8, 8.5, 9.99, 10, 12]) await spend(spent)
  t.strictSame(types(), ['budgetWarned', 'budgetExceeded'])
  t.match(told, [
    [
      { level: 1, budget: 'daily', holder: 'bot' },
      { actor: 'gateway', action: 'budget.warned', subject: 'daily', details: { spent: 8, limit: 10 } },
      { data: { agentId: 'bot', cause: 'daily: 8.00 of 10.00 EUR', resetsAt: '1970-01-02T00:00:00.000Z' } },
    ],
    [{ level: 2 }, { action: 'budget.exceeded' }, { data: { cause: 'daily: 10.00 of 10.00 EUR' } }],
  ])
})

t.test('what is used up at one go is not warned of first', async t => {
  const { spend, types } = open()
  await spend(11)
  t.strictSame(types(), ['budgetExceeded'])
})

t.test('a raise counts to the limit', async t => {
  const { spend, types } = open()
  await spend(8, 5)
  t.strictSame(types(), [])
  await spend(12, 5)
  t.strictSame(types(), ['budgetWarned'])
})

t.test('a budget that only counts, or of calls below the limit, tells nothing', async t => {
  const { spend, types } = open({ Limit: undefined })
  await spend(1e6)
  t.strictSame(types(), [])
})

t.test('a shared budget names no agent', async t => {
  const { spend, told } = open({ Of: 'Owner' })
  await spend(10)
  t.match(told[0]?.[2].data, { agentId: '', ownerId: 'bot', holder: 'bot' })
})

t.test('it is told again when the store was away', async t => {
  const { spend, store, types, failures } = open()
  store.fails = true
  await spend(8)
  t.equal(failures.length, 1)
  store.fails = false
  await spend(8)
  t.strictSame(types(), ['budgetWarned'])
})
