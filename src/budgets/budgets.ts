/** Budgets for people: what was spent of them in the windows that are open now. */
import { isRefusal, type Refusal } from '../base/refusals.ts'
import type { BudgetSettings } from '../config/budgets.ts'
import type { Config } from '../config/schema.ts'
import { keyOf, rowOf, type SpendRow } from '../limits/spend-lease.ts'
import type { SpendState } from '../limits/spend-slots.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord, Page, SpendOverview, SpendTable, SpendTotals, StoredSpend } from '../storage/store.ts'
import { makeRaise, type Raiser, type RaiseTerms, storeRaise } from './raises.ts'
import { type BudgetRule, createBudgetRule } from './rules.ts'
import { type BudgetView, budgetView, type HolderView, holderView } from './view.ts'

export interface BudgetsOptions {
  readonly config: Pick<Config, 'Budgets' | 'Metering' | 'HumanInTheLoop'>
  readonly clock: Clock
  readonly store: { readonly spend: Pick<SpendTable, 'list' | 'find' | 'totals' | 'raise'> }
  /** What this gateway knows of a key beyond the store; undefined: nothing. */
  readonly stateOf: (key: string) => SpendState | undefined
  /** Keys of which the store was not told all that calls of this gateway have spent. */
  readonly unreported: () => readonly string[]
  readonly agents: () => readonly AgentRecord[]
}

/** All of it rejects with a StoreError when the store fails. */
export type Budgets = ReturnType<typeof createBudgets>

interface KnownBudget {
  readonly settings: BudgetSettings
  readonly rule: BudgetRule
}

export function createBudgets({ config, clock, store, stateOf, unreported, agents }: BudgetsOptions) {
  const budgets = config.Budgets.map((settings): KnownBudget => ({ settings, rule: createBudgetRule(settings) }))
  const { Currency } = config.Metering

  const viewsOf = async (some: readonly KnownBudget[], now: number): Promise<readonly BudgetView[]> => {
    const totals = await totalsOf(some, now, { store, stateOf, unreported })
    return some.map(({ settings, rule }) =>
      budgetView({ settings, rule, currency: Currency, window: rule.windowAt(now), total: totals.get(rule.name), now }),
    )
  }

  const viewOf = (rule: BudgetRule, stored: StoredSpend, now: number): HolderView =>
    holderView({ rule, currency: Currency, stored, state: stateOf(keyOf(stored)), now })

  const raising = {
    ...{ rules: budgets.map(({ rule }) => rule), clock, agents },
    // SIGHUP changes it.
    get fourEyes() {
      return config.HumanInTheLoop.FourEyes
    },
  }

  return {
    /** In the order of the settings. */
    all: (): Promise<readonly BudgetView[]> => viewsOf(budgets, clock.now()),
    /** Who has the budget, and what each has spent; undefined: there is no such budget. */
    async holders(name: string, page: Page) {
      const found = budgets.find(({ rule }) => rule.name === name)
      if (found === undefined) return undefined
      const now = clock.now()
      const { rule } = found
      const budget = (await viewsOf([found], now))[0]!
      const { items, totalCount } = await store.spend.list({ budget: name, from: rule.windowAt(now).start }, page)
      return { budget, items: items.map(stored => viewOf(rule, stored, now)), totalCount }
    },
    /** Those that calls of the agent may be held against. */
    async ofAgent(agent: AgentRecord): Promise<readonly HolderView[]> {
      const now = clock.now()
      const own = budgets.filter(({ rule }) => rule.appliesTo(agent))
      const rows = own.map(({ rule }) => rule.rowAt(agent, now))
      const stored = new Map((await store.spend.find(rows)).map(row => [keyOf(row), row]))
      return own.map(({ rule }, n) => viewOf(rule, stored.get(keyOf(rows[n]!)) ?? unspent(rows[n]!), now))
    },
    /** The state after the raise. */
    async raise(name: string, given: RaiseTerms, by: Raiser): Promise<HolderView | Refusal> {
      const made = makeRaise(name, given, by, raising)
      if (isRefusal(made)) return made
      const refused = await storeRaise(made, store)
      if (refused !== undefined) return refused
      const [stored] = await store.spend.find([made.terms])
      const rule = raising.rules.find(rule => rule.name === name)
      if (rule === undefined || stored === undefined) throw new Error('cannot happen: a raised budget is not there')
      return viewOf(rule, stored, clock.now())
    },
    /** The raise of an approval, which counts with it. */
    raiseOfApproval: (name: string, given: RaiseTerms, by: Raiser) => makeRaise(name, given, by, raising),
  }
}

/** Keys whose rows are read beside the totals; the store is told of all within four seconds. */
const maxUnreported = 500

/** By name: what the store has, and what this gateway has not told it yet. */
async function totalsOf(
  budgets: readonly KnownBudget[],
  now: number,
  { store, stateOf, unreported }: Pick<BudgetsOptions, 'store' | 'stateOf' | 'unreported'>,
): Promise<ReadonlyMap<string, SpendTotals>> {
  const rules = new Map(budgets.map(({ rule }) => [rule.name, rule]))
  const windows = budgets.map(({ rule }) => ({
    ...{ budget: rule.name, from: rule.windowAt(now).start, limit: rule.limit },
  }))
  const isShown = ({ budget, from }: SpendRow) => rules.get(budget)?.windowAt(now).start === from
  const rows = unreported().slice(0, maxUnreported).map(rowOf).filter(isShown)
  const stored = await store.spend.totals(windows, rows)
  const totals = new Map(stored.totals.map(total => [total.budget, total]))
  for (const row of stored.rows) {
    const [rule, total, state] = [rules.get(row.budget), totals.get(row.budget), stateOf(keyOf(row))]
    if (rule && total && state) totals.set(rule.name, withUnreported(total, { rule, row, state }))
  }
  return totals
}

interface Unreported {
  readonly rule: BudgetRule
  readonly row: SpendOverview['rows'][number]
  readonly state: SpendState
}

/** The totals with what a holder has spent beyond the store, as the holder's own view has it. */
function withUnreported(total: SpendTotals, { rule: { limit }, row, state }: Unreported): SpendTotals {
  const beyond = Math.max(0, state.spent - row.spent)
  const all = (limit ?? 0) + row.raised
  const share = limit === undefined ? null : Math.max(total.highestShare ?? 0, all > 0 ? state.spent / all : 1)
  return { ...total, spent: total.spent + beyond, highestShare: share }
}

const unspent = (row: SpendRow): StoredSpend => ({ ...row, spent: 0, estimated: 0, calls: 0, leased: 0, raised: 0 })
