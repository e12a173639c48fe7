import t from 'tap'
import { createBudgetRule } from '../../src/budgets/rules.ts'
import type { BudgetSettings } from '../../src/config/budgets.ts'
import { rowOf } from '../../src/limits/spend-lease.ts'
import type { AgentRecord } from '../../src/storage/store.ts'

const settings: Omit<BudgetSettings, 'Of'> = {
  ...{
    Name: 'b',
    Unit: 'Calls',
    Limit: 1,
    Per: 'Day',
    TimeZone: 'UTC',
    AtLimit: 'Deny',
    Reserve: 50,
    WarnAt: 80,
    Exact: false,
  },
  ...{ Agents: [], Owners: [], Policies: [], Hosts: [], Models: [] },
}
// The part of a record that budgets read.
const agent = (id: string, ownerId: string) => ({ id, ownerId, policyName: null }) as AgentRecord
const noon = Date.UTC(2026, 0, 31, 12)
const day = 86_400_000

t.test('each agent has a row of its own, and a new one in the next window', async t => {
  const rule = createBudgetRule({ ...settings, Of: 'Agent' })
  for (const now of [noon, noon + 1, noon + day]) {
    for (const id of ['one', 'two', 'one']) {
      const from = now - (now % day)
      t.match(rowOf(rule.keyAt(agent(id, 'o'), now)), { budget: 'b', holder: id, from, until: from + day })
    }
  }
})

t.test('agents of an owner, or without a policy, share one', async t => {
  const keysOf = (Of: 'Owner' | 'Policy' | 'All') => {
    const rule = createBudgetRule({ ...settings, Of })
    return new Set([agent('one', 'o'), agent('two', 'o'), agent('three', 'p')].map(each => rule.keyAt(each, noon))).size
  }
  t.strictSame([keysOf('Owner'), keysOf('Policy'), keysOf('All')], [2, 1, 1])
})
