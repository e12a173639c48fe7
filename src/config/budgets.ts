/** Settings under `Budgets`. */
import { budgetName, hostAndPort, timeZone, uuid } from './formats.ts'
import {
  boolean,
  choice,
  entriesProblem,
  integer,
  list,
  objects,
  optional,
  optionalNumber,
  type SettingValues,
  text,
} from './setting.ts'

/** Highest limit: amounts of money are counted in thousandths of a millionth. */
const maxLimit = 9_000_000

export const budgets = objects(
  {
    Name: optional('Name of the budget: lower-case letters, digits and dashes.', budgetName),
    Of: choice(['Agent', 'Owner', 'Policy', 'All'], 'Agent', 'Who has one each; All: there is one.'),
    Unit: choice(['Money', 'Tokens', 'Calls'], 'Money', 'What is counted. Money is in Metering:Currency.'),
    Limit: optionalNumber('What may be spent in one window; absent: it is only counted.', { min: 0 }),
    Per: choice(
      ['Hour', 'Day', 'Week', 'Month'],
      'Day',
      'The window, by the calendar of TimeZone. Weeks begin on Monday.',
    ),
    TimeZone: text('UTC', 'IANA time zone of the window.', timeZone),
    Agents: list('Only calls of these agents; empty: of any.', uuid),
    Owners: list('Only calls of agents of these owners; empty: of any.'),
    Policies: list('Only calls of agents with these policies; empty: with any.'),
    Hosts: list('Only calls to these hosts, written as in Metering:Hosts; empty: to any.', hostAndPort),
    Models: list('Only calls of these models, in which * stands for any text; empty: of any.'),
    AtLimit: choice(
      ['Deny', 'Hitl', 'Allow'],
      'Deny',
      'Calls beyond the limit: refuse them, hold them for a person, or let them pass and count them.',
    ),
    Reserve: integer(
      50,
      'Percent of the highest cost of a call that are reserved while it is under way; with Exact all of it is.',
      { min: 1, max: 100 },
    ),
    WarnAt: integer(80, 'Percent of the limit at which people are told; they are told again when it is used up.', {
      min: 1,
      max: 100,
    }),
    Exact: boolean(
      false,
      'A call passes only if all of its highest cost fits, a token for each byte, so that the limit is never exceeded.',
    ),
  },
  'Budgets of agents, at most 100, and 8 for one call; all that apply to a call must allow it. See docs/budgets.md.',
)

export type BudgetSettings = SettingValues<typeof budgets>[number]

/** Whether there is a budget of tokens or of money: answers are read for it. */
export const readsUsage = ({ Budgets }: { readonly Budgets: readonly BudgetSettings[] }): boolean =>
  Budgets.some(({ Unit }) => Unit !== 'Calls')

export function budgetsProblem(entries: readonly BudgetSettings[]): string | undefined {
  const names = tooManyTogether(entries)?.map(({ Name }) => Name)
  const problems = [
    entries.length > maxBudgets && `must have at most ${maxBudgets} entries`,
    entriesProblem(entries, problemOf),
    names && `at most ${maxTogether} may apply to one call, and these may: ${names.join(', ')}`,
  ]
  return problems.filter(Boolean).join('; ') || undefined
}

const maxBudgets = 100
/** Each is a row that every call reserves in. */
const maxTogether = 8

const filters = ['Agents', 'Owners', 'Policies', 'Hosts'] as const
type Filter = (typeof filters)[number]

/**
 * Budgets that may apply to one call, when they are too many. A call has one agent, owner, policy and host. Models tell
 * nothing: a call that names none counts in the budgets of all.
 */
function tooManyTogether(
  entries: readonly BudgetSettings[],
  [filter, ...rest]: readonly Filter[] = filters,
): readonly BudgetSettings[] | undefined {
  if (entries.length <= maxTogether) return undefined
  if (filter === undefined) return entries
  const values = new Set(['', ...entries.flatMap(entry => entry[filter])])
  // Many values are often listed by the same budgets.
  const groups = new Map<string, readonly BudgetSettings[]>()
  for (const value of values) {
    const meant = entries.filter(entry => isListed(entry[filter], value))
    groups.set(meant.map(entry => entries.indexOf(entry)).join(), meant)
  }
  for (const meant of groups.values()) {
    const found = tooManyTogether(meant, rest)
    if (found !== undefined) return found
  }
  return undefined
}

/** A pattern may stand for any host. */
const isListed = (list: readonly string[], value: string): boolean =>
  list.length === 0 || list.includes(value) || list.some(text => text.includes('*'))

function problemOf({ Name, Unit, Limit, Exact }: BudgetSettings, before: readonly BudgetSettings[]) {
  if (Name === undefined) return 'Name must be set'
  if (before.some(other => other.Name === Name)) return 'Name must not be that of another entry'
  if (Limit !== undefined && Unit === 'Money' && Limit > maxLimit) return `Limit must be <= ${maxLimit}`
  if (Limit !== undefined && Unit !== 'Money' && !Number.isSafeInteger(Limit)) return 'Limit must be a whole number'
  return Exact && Limit === undefined ? 'Exact must not be set without a Limit' : undefined
}
