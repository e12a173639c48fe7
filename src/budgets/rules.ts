/** Budgets of the settings, as calls are held against them. */
import { type HostAndPort, isAtHost, parseHostAndPort } from '../base/host-port.ts'
import type { Target } from '../base/target.ts'
import { wildcard } from '../base/wildcard.ts'
import type { BudgetSettings } from '../config/budgets.ts'
import { type BudgetWindow, createWindows } from '../limits/budget-window.ts'
import type { SpendCharge } from '../limits/spend.ts'
import { keyOf, type SpendRow } from '../limits/spend-lease.ts'
import type { SpendState } from '../limits/spend-slots.ts'
import type { AgentRecord } from '../storage/store.ts'

/** Billionths of the currency: sums of whole numbers have no error. */
const moneyScale = 1e9

/** One budget, and what a call takes of it. */
export interface BudgetCharge extends SpendCharge {
  readonly rule: BudgetRule
}

export interface BudgetRule {
  readonly name: string
  readonly unit: BudgetSettings['Unit']
  /** Calls of any kind are counted, whatever they cost. */
  readonly countsCalls: boolean
  readonly of: BudgetSettings['Of']
  /** In the whole numbers that are counted; undefined: it is only counted. */
  readonly limit: number | undefined
  readonly exact: boolean
  /** Calls pass beyond the limit. */
  readonly passes: boolean
  /** Calls at the limit are held for a person. */
  readonly asks: boolean
  /** Share of the highest cost of a call that is reserved. */
  readonly share: number
  /** Share of the limit at which people are told. */
  readonly warnAt: number
  readonly windowAt: (now: number) => BudgetWindow
  /** Who has the budget that a call of the agent is held against. */
  readonly holderOf: (agent: AgentRecord) => string
  /** Key of the row that a call of the agent is counted in. */
  readonly keyAt: (agent: AgentRecord, now: number) => string
  readonly rowAt: (agent: AgentRecord, now: number) => SpendRow
  /** What one call of the agent takes of it, in a list of its own. */
  readonly oneCallAt: (agent: AgentRecord, now: number) => readonly [BudgetCharge]
  /** Field of policies that it answers: it counts all that an agent spends in such a window. Undefined: none. */
  readonly total: 'spendToday' | 'spendThisMonth' | 'tokensToday' | undefined
  /** Undefined: calls of any model. */
  readonly models: RegExp | undefined
  applies(call: { readonly agent: AgentRecord; readonly target: Target }): boolean
  /** Whether any call of the agent may be held against it. */
  appliesTo(agent: AgentRecord): boolean
}

export const scaleOf = (unit: BudgetRule['unit']): number => (unit === 'Money' ? moneyScale : 1)

/** Its unit, as people read it. */
export const unitText = ({ unit }: Pick<BudgetRule, 'unit'>, currency: string): string =>
  unit === 'Money' ? currency : unit.toLowerCase()

/** What is spent of a budget with a limit: `10.02 of 10.00 USD`. */
export function spentText(
  rule: BudgetRule,
  { spent, raised }: Pick<SpendState, 'spent' | 'raised'>,
  currency: string,
): string {
  const [part, all] = [spent, (rule.limit ?? 0) + raised].map(amount =>
    rule.unit === 'Money' ? (amount / moneyScale).toFixed(2) : String(amount),
  )
  return `${part} of ${all} ${unitText(rule, currency)}`
}

export function createBudgetRule(settings: BudgetSettings): BudgetRule {
  const { Name, Unit, Of, Limit, Exact, AtLimit, Reserve, WarnAt, Per, TimeZone, Models } = settings
  if (Name === undefined) throw new Error('cannot happen: a budget without a name was not refused')
  const windowAt = createWindows(Per, TimeZone)
  const keys = createKeys({ name: Name, of: Of, windowAt }, key => [
    { rule, key, amount: 1, limit: rule.limit, passes: rule.passes },
  ])
  const rule: BudgetRule = {
    ...{ name: Name, unit: Unit, of: Of, exact: Exact, passes: AtLimit === 'Allow', asks: AtLimit === 'Hitl' },
    countsCalls: Unit === 'Calls' && Models.length === 0,
    limit: Limit === undefined ? undefined : Math.round(Limit * scaleOf(Unit)),
    share: Exact ? 1 : Reserve / 100,
    warnAt: WarnAt / 100,
    windowAt,
    holderOf: agent => holderOf(Of, agent),
    ...keys,
    models: Models.length === 0 ? undefined : wildcard(Models),
    total: totalOf(settings),
    ...createFilters(settings),
  }
  return rule
}

function totalOf({ Of, Unit, Per, TimeZone, Hosts, Models }: BudgetSettings): BudgetRule['total'] {
  if (Of !== 'Agent' || TimeZone !== 'UTC' || Hosts.length > 0 || Models.length > 0) return undefined
  if (Unit === 'Money') return Per === 'Day' ? 'spendToday' : Per === 'Month' ? 'spendThisMonth' : undefined
  return Unit === 'Tokens' && Per === 'Day' ? 'tokensToday' : undefined
}

function createFilters({ Agents, Owners, Policies, Hosts }: BudgetSettings): Pick<BudgetRule, 'applies' | 'appliesTo'> {
  const places = Hosts.map(parseHostAndPort)
  const agents = Agents.map(id => id.toLowerCase())
  const isOf = (names: readonly string[], name: string | null) =>
    names.length === 0 || (name !== null && names.includes(name))
  const appliesTo = (agent: AgentRecord) =>
    isOf(agents, agent.id) && isOf(Owners, agent.ownerId) && isOf(Policies, agent.policyName)
  return { appliesTo, applies: ({ agent, target }) => appliesTo(agent) && isAt(places, target) }
}

const isAt = (places: readonly HostAndPort[], { origin }: Target): boolean =>
  places.length === 0 || places.some(place => isAtHost(place, origin))

/** Name of the policy of agents that have none of their own: no policy has this name. */
const noPolicy = '-'

function holderOf(of: BudgetRule['of'], { id, ownerId, policyName }: AgentRecord): string {
  if (of === 'All') return '*'
  if (of === 'Agent') return id
  return of === 'Owner' ? ownerId : (policyName ?? noPolicy)
}

/** Holders whose keys are kept for each budget. */
const maxKept = 10_000

/** Keys of a budget's rows. The same texts and charges each time: tables need not hash them again. */
function createKeys(
  { name, of, windowAt }: Pick<BudgetRule, 'name' | 'of' | 'windowAt'>,
  oneCall: (key: string) => readonly [BudgetCharge],
): Pick<BudgetRule, 'keyAt' | 'rowAt' | 'oneCallAt'> {
  const kept = new Map<string, readonly [BudgetCharge]>()
  let window: BudgetWindow | undefined
  const rowOf = (holder: string, { start, end }: BudgetWindow) => ({ budget: name, holder, from: start, until: end })
  const oneCallAt = (agent: AgentRecord, now: number) => {
    const current = windowAt(now)
    if (current !== window || kept.size > maxKept) kept.clear()
    window = current
    const holder = holderOf(of, agent)
    const known = kept.get(holder)
    if (known !== undefined) return known
    const charges = oneCall(keyOf(rowOf(holder, current)))
    kept.set(holder, charges)
    return charges
  }
  return {
    oneCallAt,
    keyAt: (agent, now) => oneCallAt(agent, now)[0].key,
    rowAt: (agent, now) => rowOf(holderOf(of, agent), windowAt(now)),
  }
}
