/** Raises: more for one who has a budget, in one window alone. */
import { randomUUID } from 'node:crypto'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord, ClaimedRaise, Raised, SpendTable } from '../storage/store.ts'
import { type BudgetRule, scaleOf } from './rules.ts'

/** Who raises: an active agent with one of the roles that may. */
export interface Raiser {
  readonly agent: Pick<AgentRecord, 'id' | 'ownerId' | 'roles'>
  readonly requestId: string | null
}

export interface RaiseTerms {
  /** Made from an Idempotency-Key; absent: a random one. A raise counts once for each id. */
  readonly id?: string | undefined
  /** Id of the agent, name of the owner or of the policy; `*` of all together. */
  readonly holder: string
  /** In the unit of the budget. */
  readonly amount: number
  readonly comment?: string | null | undefined
  /** End of the window that it is for, milliseconds since the epoch; absent: of the open one. */
  readonly until?: number
  /** The held request whose approval raises. */
  readonly hitlId?: string
}

export interface RaiseParts {
  readonly rules: readonly BudgetRule[]
  readonly clock: Clock
  readonly fourEyes: Config['HumanInTheLoop']['FourEyes']
  readonly agents: () => readonly AgentRecord[]
}

/** All raises of a window add at most so many times the limit. */
const maxTimes = { reviewer: 1, admin: 10 }

const wrongHolder = {
  Agent: 'must be the id of an agent that has the budget',
  Owner: 'must be the name of an owner who has the budget',
  Policy: 'must be the name of a policy that has the budget',
  All: 'must be *, since all agents share the budget',
}

export const noBudget = (name: string): string => `There is no budget ${name}.`

/** Why somebody may not raise so, or the raise. */
export function makeRaise(name: string, given: RaiseTerms, by: Raiser, parts: RaiseParts): ClaimedRaise | Refusal {
  const { clock, rules } = parts
  const rule = rules.find(rule => rule.name === name)
  if (rule === undefined) return refuse('not_found', noBudget(name))
  if (rule.limit === undefined) return invalid('name', 'must be a budget with a limit')
  const { start, end } = rule.windowAt(clock.now())
  if (given.until !== undefined && given.until !== end) return isOver
  const holders = parts.agents().filter(agent => rule.appliesTo(agent) && isSame(rule, agent, given.holder))
  const [first] = holders
  if (first === undefined) return invalid('holder', wrongHolder[rule.of])
  if (isOwn(rule, holders, by, parts.fourEyes)) return refuse('own_request', ownBudget)
  const times = by.agent.roles.includes('admin') ? maxTimes.admin : maxTimes.reviewer
  const max = times * rule.limit
  const amount = Math.round(given.amount * scaleOf(rule.unit))
  const isCounted = rule.unit === 'Money' || Number.isInteger(given.amount)
  if (!isCounted || amount < 1 || amount > max) return tooMuch(rule, times)
  const id = given.id ?? randomUUID()
  const holder = rule.holderOf(first)
  return {
    terms: { id, budget: name, holder, from: start, until: end, amount, max },
    entry: {
      at: clock.now(),
      actor: by.agent.id,
      requestId: by.requestId,
      action: 'budget.raise',
      subject: name,
      details: {
        ...{ raiseId: id, holder, amount: given.amount, unit: rule.unit, comment: given.comment ?? null },
        until: new Date(end).toISOString(),
        ...(given.hitlId !== undefined && { hitlId: given.hitlId }),
      },
    },
  }
}

/** Ids of agents may be written in any letter case. */
const isSame = (rule: BudgetRule, agent: AgentRecord, holder: string): boolean =>
  rule.holderOf(agent) === (rule.of === 'Agent' ? holder.toLowerCase() : holder)

/** Nobody raises for themselves; with `owner`, not for agents of the same owner either. */
function isOwn(
  { of }: BudgetRule,
  holders: readonly AgentRecord[],
  { agent }: Raiser,
  fourEyes: RaiseParts['fourEyes'],
): boolean {
  if (of === 'Owner') return holders.some(({ ownerId }) => ownerId === agent.ownerId)
  if (of !== 'Agent') return false
  return holders.some(({ id, ownerId }) => id === agent.id || (fourEyes === 'owner' && ownerId === agent.ownerId))
}

const ownBudget = 'Nobody may raise a budget of their own. Ask another admin.'
const isOver = refuse('wrong_state', 'The window in which the request was held is over. Approve it without a raise.')

const invalid = (field: string, message: string): Refusal =>
  refuse('invalid_budget', undefined, { errors: [{ field, message }] })

const tooMuch = ({ unit }: BudgetRule, times: number): Refusal => {
  const kind = unit === 'Money' ? '' : 'a whole number, '
  return invalid(
    'amount',
    `must be ${kind}above 0, and with all raises of this window at most ${times} times the limit`,
  )
}

/** Stores it. Refusals: `already_exists` when a raise with its id has counted, `invalid_budget`. */
export async function storeRaise(
  { terms, entry }: ClaimedRaise,
  { spend }: { readonly spend: Pick<SpendTable, 'raise'> },
): Promise<Refusal | undefined> {
  return refusalOf(await spend.raise(terms, entry))
}

function refusalOf(raised: Raised): Refusal | undefined {
  if (raised === 'raised') return undefined
  return raised === 'repeated' ? refuse('already_exists', 'This raise has counted before.') : raisedEnough
}

/** The store has refused it: others have raised meanwhile. */
const raisedEnough = invalid('amount', 'must not exceed what may be raised in this window, with all raises so far')
