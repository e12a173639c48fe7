/** Settings under `Budgets`. */
import { budgetName, hostAndPort, timeZone, uuid } from './formats.ts'
import {
  boolean,
  choice,
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
    Exact: boolean(
      false,
      'A call passes only if all of its highest cost fits, a token for each byte, so that the limit is never exceeded.',
    ),
  },
  'Budgets of agents, at most 100; all that apply to a call must allow it. See docs/budgets.md.',
)

export type BudgetSettings = SettingValues<typeof budgets>[number]

/** Whether there is a budget of tokens or of money: answers are read for it. */
export const readsUsage = ({ Budgets }: { readonly Budgets: readonly BudgetSettings[] }): boolean =>
  Budgets.some(({ Unit }) => Unit !== 'Calls')

/** What is wrong with the entries; undefined: nothing. */
export function budgetsProblem(entries: readonly BudgetSettings[]): string | undefined {
  const problems = entries.flatMap((entry, index) => {
    const problem = problemOf(entry, entries.slice(0, index))
    return problem === undefined ? [] : [`entry ${index}: ${problem}`]
  })
  if (entries.length > maxBudgets) problems.unshift(`must have at most ${maxBudgets} entries`)
  return problems.length === 0 ? undefined : problems.join('; ')
}

const maxBudgets = 100

function problemOf({ Name, Unit, Limit, Exact }: BudgetSettings, before: readonly BudgetSettings[]) {
  if (Name === undefined) return 'Name must be set'
  if (before.some(other => other.Name === Name)) return 'Name must not be that of another entry'
  if (Limit !== undefined && Unit === 'Money' && Limit > maxLimit) return `Limit must be <= ${maxLimit}`
  if (Limit !== undefined && Unit !== 'Money' && !Number.isSafeInteger(Limit)) return 'Limit must be a whole number'
  return Exact && Limit === undefined ? 'Exact must not be set without a Limit' : undefined
}
