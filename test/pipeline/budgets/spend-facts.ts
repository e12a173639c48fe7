/** What rules read of budgets. */
import t from 'tap'
import { createBudgetRule } from '../../../src/budgets/rules.ts'
import type { BudgetSettings } from '../../../src/config/budgets.ts'
import type { SpendState } from '../../../src/limits/spend-slots.ts'
import type { BudgetParts } from '../../../src/pipeline/budgets/reservation.ts'
import { noteSpent } from '../../../src/pipeline/budgets/spend-facts.ts'
import type { SpendFacts } from '../../../src/policy/request/input.ts'

const usual: BudgetSettings = {
  ...{ Name: 'day', Unit: 'Money', Of: 'Agent', Limit: 10, Per: 'Day', TimeZone: 'UTC', AtLimit: 'Deny', Reserve: 50 },
  ...{ WarnAt: 80, Exact: false, Agents: [], Owners: [], Policies: [], Hosts: [], Models: [] },
}
const agent = { id: 'bot', ownerId: 'team', policyName: 'p' }
const cent = 1e7

interface Given {
  readonly settings: readonly Partial<BudgetSettings>[]
  /** By name of the budget; absent: it is not known. */
  readonly states: Readonly<Record<string, Partial<SpendState>>>
  /** Known once the store was asked. */
  readonly later?: Given['states']
  /** Budgets that rules name. */
  readonly named?: readonly string[]
}

async function spentOf({ settings, states, later, named }: Given): Promise<SpendFacts | undefined> {
  let known = states
  const asked: string[] = []
  const parts = {
    rules: settings.map(one => createBudgetRule({ ...usual, ...one })),
    clock: { now: () => Date.UTC(2026, 0, 5, 10), steady: () => 0 },
    book: {
      look(key: string) {
        const state = known[key.split(' ', 1)[0]!]
        return state && { spent: 0, reserved: 0, raised: 0, ...state }
      },
    },
    async asked(key: string) {
      asked.push(key)
      known = { ...known, ...later }
    },
  }
  const rulebook = named && { policy: { budgets: new Set(named) } }
  // The parts that are read.
  const call = { agent, rulebook, spent: undefined } as unknown as Parameters<typeof noteSpent>[0]
  const waits = noteSpent(call, parts as unknown as BudgetParts)
  if (later === undefined && asked.length > 0) t.ok(waits)
  await waits
  return call.spent
}

t.test('without budgets nothing is known', async t => {
  const call = { agent, rulebook: undefined, spent: undefined } as unknown as Parameters<typeof noteSpent>[0]
  t.equal(noteSpent(call, undefined), undefined)
  t.equal(call.spent, undefined)
})

t.test('shares and amounts have what is reserved and raised', async t => {
  const facts = await spentOf({
    settings: [{}, { Name: 'none', Limit: 0 }, { Name: 'over', Unit: 'Tokens', Limit: 10 }],
    states: { day: { spent: 200 * cent, reserved: 100 * cent, raised: 200 * cent }, none: {}, over: { spent: 12 } },
  })
  t.strictSame(facts?.budgets.get('day'), { used: 0.25, remaining: 9 })
  t.strictSame(facts?.budgets.get('none'), { used: 1, remaining: 0 }, 'there is nothing to spend')
  t.strictSame(facts?.budgets.get('over'), { used: 1.2, remaining: 0 })
  t.match(facts, { spendToday: 3, tokensToday: 12, spendThisMonth: undefined })
})

t.test('a budget without a limit tells totals alone', async t => {
  const month = { Name: 'month', Per: 'Month', Limit: undefined } as const
  const facts = await spentOf({ settings: [month], states: { month: { spent: 50 * cent } } })
  t.equal(facts?.spendThisMonth, 0.5)
  t.strictSame(facts?.budgets.get('month'), { used: undefined, remaining: undefined })
})

t.test('budgets that count a part of the calls tell no totals', async t => {
  const parts: readonly Partial<BudgetSettings>[] = [
    ...[{ Of: 'Owner' }, { TimeZone: 'Europe/Berlin' }, { Hosts: ['a.test'] }, { Models: ['m'] }, { Per: 'Hour' }],
    ...([{ Unit: 'Calls' }, { Unit: 'Tokens', Per: 'Week' }] as const),
  ] as const
  for (const one of parts) {
    const facts = await spentOf({ settings: [one], states: { day: { spent: cent } } })
    t.match(facts, { spendToday: undefined, spendThisMonth: undefined, tokensToday: undefined }, JSON.stringify(one))
  }
  const named = await spentOf({ settings: [{}], states: { day: { spent: cent } }, named: ['day'] })
  t.equal(named?.spendToday, undefined, 'rules name it')
  t.ok(named?.budgets.has('day'))
})

t.test('what is not known is asked for, and stays unknown when the store does not tell', async t => {
  const later = await spentOf({ settings: [{}], states: {}, later: { day: { spent: 100 * cent } } })
  t.equal(later?.spendToday, 1)
  const never = await spentOf({ settings: [{}], states: {} })
  t.equal(never?.spendToday, undefined)
  t.strictSame(never?.budgets.get('day'), { used: undefined, remaining: undefined })
})
