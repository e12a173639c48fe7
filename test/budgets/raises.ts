/** Who may raise a budget, and by how much. */
import t from 'tap'
import { makeRaise, type RaiseTerms } from '../../src/budgets/raises.ts'
import { createBudgetRule } from '../../src/budgets/rules.ts'
import type { BudgetSettings } from '../../src/config/budgets.ts'
import type { AgentRecord, Role } from '../../src/storage/store.ts'

const settings: BudgetSettings = {
  ...{ Name: 'daily', Unit: 'Money', Limit: 10, Per: 'Day', TimeZone: 'UTC', AtLimit: 'Hitl', Reserve: 50, WarnAt: 80 },
  ...{ Exact: false, Of: 'Agent', Agents: [], Owners: [], Policies: [], Hosts: [], Models: [] },
}
// The part of a record that budgets read.
const agent = (id: string, ownerId: string, role: Role = 'agent') =>
  ({ id, ownerId, policyName: null, roles: [role] }) as unknown as AgentRecord
const bot = agent('bot', 'team')
const agents = [bot, agent('second', 'team'), agent('lead', 'team', 'admin'), agent('boss', 'people', 'admin')]
const morning = Date.UTC(2026, 0, 5, 10)
const midnight = Date.UTC(2026, 0, 6)

interface Given extends Partial<RaiseTerms> {
  readonly by?: AgentRecord
  readonly of?: BudgetSettings['Of']
  readonly fourEyes?: 'self' | 'owner'
}

function make({ by = agents[3]!, of = 'Agent', fourEyes = 'self', ...terms }: Given = {}) {
  return makeRaise(
    'daily',
    { holder: 'bot', amount: 1, ...terms },
    { agent: by, requestId: null },
    {
      rules: [createBudgetRule({ ...settings, Of: of })],
      clock: { now: () => morning, steady: () => 0 },
      fourEyes,
      agents: () => agents,
    },
  )
}

/** The code of the refusal, or the raise. */
function raise(given?: Given) {
  const made = make(given)
  return 'refusal' in made ? made.refusal : made.terms
}

t.test('a raise is for the window that is open', async t => {
  t.match(raise(), { budget: 'daily', holder: 'bot', from: Date.UTC(2026, 0, 5), until: midnight, amount: 1e9 })
})

t.test('that of an approval is for the window in which the request was held', async t => {
  t.match(raise({ until: midnight }), { until: midnight })
  t.equal(raise({ until: midnight - 86_400_000 }), 'wrong_state')
})

t.test('reviewers may double the limit, admins add ten times as much', async t => {
  const reviewer = agent('r', 'people', 'reviewer')
  t.match(raise({ by: reviewer, amount: 10 }), { max: 10e9 })
  t.equal(raise({ by: reviewer, amount: 10.01 }), 'invalid_budget')
  t.match(raise({ amount: 100 }), { max: 100e9 })
  t.equal(raise({ amount: 100.01 }), 'invalid_budget')
})

t.test('nobody raises a budget of their own', async t => {
  const [, , lead] = agents
  t.equal(raise({ by: bot }), 'own_request')
  t.match(raise({ by: lead! }), { holder: 'bot' }, 'but one of another agent of the same owner')
  t.equal(raise({ by: lead!, fourEyes: 'owner' }), 'own_request')
  t.equal(raise({ by: lead!, of: 'Owner', holder: 'team' }), 'own_request')
  t.match(raise({ of: 'Owner', holder: 'team' }), { holder: 'team' })
  t.match(raise({ by: lead!, of: 'All', holder: '*' }), { holder: '*' }, 'all have one together')
})

t.test('the holder must be one who has the budget', async t => {
  for (const holder of ['nobody', 'team', '*', '']) t.equal(raise({ holder }), 'invalid_budget', holder)
  const said = { Agent: /the id of an agent/, Owner: /the name of an owner/, Policy: /of a policy/, All: /be \*/ }
  for (const whose of ['Agent', 'Owner', 'Policy', 'All'] as const)
    t.match(make({ of: whose, holder: 'bo' }), { errors: [{ field: 'holder', message: said[whose] }] })
})
