import { timeText } from '../text.ts'
import type { BudgetHolder } from '../types.ts'
import { useRead } from './read.ts'
import './budgets.css'

/** What an agent has spent of its budgets, or of one of them; nothing when it has none. */
export function AgentBudgets({ agentId, only }: { readonly agentId: string; readonly only?: string | undefined }) {
  const { data } = useRead<readonly BudgetHolder[]>(`/agents/${encodeURIComponent(agentId)}/budgets`)
  const shown = data?.filter(({ budget }) => only === undefined || budget === only) ?? []
  if (shown.length === 0) return null
  return (
    <section class="stack" aria-labelledby="budgets">
      <h2 id="budgets">{only === undefined ? 'Budgets' : 'Budget'}</h2>
      <ul class="budgets">
        {shown.map(one => (
          <BudgetBar key={one.budget} state={one} />
        ))}
      </ul>
    </section>
  )
}

const whose = { Agent: '', Owner: ' of its owner', Policy: ' of its policy', All: ' of all agents' }

function BudgetBar({ state }: { readonly state: BudgetHolder }) {
  const { budget, of, limit = null, raised = 0, spent = 0, reserved = 0, estimated = 0, forecast, resetsAt } = state
  const amount = (value: number) => amountText(value, state)
  const all = limit === null ? undefined : limit + raised
  const isOver = all !== undefined && spent >= all
  const notes = [
    reserved > 0 && `${amount(reserved)} reserved`,
    raised > 0 && `raised by ${amount(raised)}`,
    spent > 0 && estimated > 0 && `${Math.round((estimated / spent) * 100)} % estimated`,
    typeof forecast === 'number' && `${amount(forecast)} by the end at this pace`,
  ]
  return (
    <li>
      <p class="budget-head">
        <span>
          <strong>{budget}</strong>
          {whose[of]}
        </span>
        <span class={isOver ? 'bad-text' : undefined}>
          {all === undefined ? amount(spent) : `${amount(spent)} of ${amount(all)}`}
        </span>
      </p>
      {all !== undefined && <Bar label={budget} spent={share(spent, all)} reserved={share(reserved, all)} />}
      <p class="hint">{[...notes.filter(Boolean), `until ${timeText(resetsAt)}`].join(' · ')}</p>
    </li>
  )
}

/** Percent of all, 100 at most. */
const share = (part: number, all: number): number => (all <= 0 ? 100 : Math.min(100, (part / all) * 100))

function Bar({
  label,
  spent,
  reserved,
}: {
  readonly label: string
  readonly spent: number
  readonly reserved: number
}) {
  return (
    <svg
      class={spent >= 100 ? 'budget-bar over' : 'budget-bar'}
      viewBox="0 0 100 1"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${Math.round(spent)} % spent, ${Math.round(reserved)} % reserved`}
    >
      <rect class="all" width={100} height={1} />
      <rect class="reserved" width={Math.min(100, spent + reserved)} height={1} />
      <rect class="spent" width={spent} height={1} />
    </svg>
  )
}

/** An amount with the unit of its budget. */
function amountText(value: number, { unit, currency }: Pick<BudgetHolder, 'unit' | 'currency'>): string {
  if (unit === 'Money') return `${value.toFixed(2)} ${currency}`
  return `${Math.round(value).toLocaleString('en')} ${unit.toLowerCase()}`
}
