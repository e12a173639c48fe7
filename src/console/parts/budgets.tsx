import type { ComponentChildren } from 'preact'
import { hrefOf } from '../router.ts'
import { isAdmin, ownBudgetText } from '../session.ts'
import { timeText } from '../text.ts'
import type { BudgetHolder } from '../types.ts'
import { Raise } from './raise.tsx'
import { useRead } from './read.ts'
import { Text } from './text.tsx'
import './budgets.css'

/** What an agent has spent of its budgets, or of one of them; nothing when it has none. */
export function AgentBudgets({ agentId, only }: { readonly agentId: string; readonly only?: string | undefined }) {
  const { data, again } = useRead<readonly BudgetHolder[]>(`/agents/${encodeURIComponent(agentId)}/budgets`)
  const shown = data?.filter(({ budget }) => only === undefined || budget === only) ?? []
  if (shown.length === 0) return null
  return (
    <section class="stack" aria-labelledby="budgets">
      <h2 id="budgets">{only === undefined ? 'Budgets' : 'Budget'}</h2>
      {/* The dialog of an approval has the raise of the budget that holds the request. */}
      <BudgetList states={shown} names="budgets" onRaised={only === undefined ? again : undefined} />
    </section>
  )
}

interface BudgetListProps {
  readonly states: readonly BudgetHolder[]
  /** What names a bar: its budget, or who has it. */
  readonly names: 'budgets' | 'holders'
  /** Absent: it is not raised here. */
  readonly onRaised?: (() => void) | undefined
}

export function BudgetList({ states, names, onRaised }: BudgetListProps) {
  return (
    <ul class="budgets">
      {states.map(one => (
        <BudgetBar
          key={`${one.budget} ${one.holder}`}
          state={one}
          name={names === 'budgets' ? <OfBudget state={one} /> : <Holder state={one} />}
          onRaised={onRaised}
        />
      ))}
    </ul>
  )
}

const whose = { Agent: '', Owner: ' of its owner', Policy: ' of its policy', All: ' of all agents' }

const OfBudget = ({ state: { budget, of } }: { readonly state: BudgetHolder }) => (
  <>
    <strong>{budget}</strong>
    {whose[of]}
  </>
)

function Holder({ state: { of, holder, holderName } }: { readonly state: BudgetHolder }) {
  const href = of === 'Agent' ? hrefOf('agents', holder) : undefined
  return <strong>{of === 'All' ? 'all agents' : <Text value={holderName ?? holder} limit={120} href={href} />}</strong>
}

interface BudgetBarProps {
  readonly state: BudgetHolder
  readonly name: ComponentChildren
  readonly onRaised: (() => void) | undefined
}

function BudgetBar({ state, name, onRaised }: BudgetBarProps) {
  const { budget, limit = null, raised = 0, spent = 0, reserved = 0, estimated = 0, forecast, resetsAt } = state
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
        <span>{name}</span>
        <span class={isOver ? 'bad-text' : undefined}>
          {all === undefined ? amount(spent) : `${amount(spent)} of ${amount(all)}`}
        </span>
      </p>
      {all !== undefined && <Bar label={budget} spent={share(spent, all)} reserved={share(reserved, all)} />}
      <div class="budget-head">
        <p class="hint">{[...notes.filter(Boolean), `until ${timeText(resetsAt)}`].join(' · ')}</p>
        {isAdmin.value && all !== undefined && onRaised !== undefined && (
          <RaisePart state={state} onRaised={onRaised} />
        )}
      </div>
    </li>
  )
}

/** A form that would be refused is never shown. */
function RaisePart({ state, onRaised }: { readonly state: BudgetHolder; readonly onRaised: () => void }) {
  const own = ownBudgetText(state)
  return own === undefined ? <Raise state={state} onRaised={onRaised} /> : <p class="hint">{own}</p>
}

/** Percent of all, 100 at most. */
export const share = (part: number, all: number): number => (all <= 0 ? 100 : Math.min(100, (part / all) * 100))

export function Bar({
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

export function amountText(value: number, { unit, currency }: Pick<BudgetHolder, 'unit' | 'currency'>): string {
  if (unit === 'Money') return `${value.toFixed(2)} ${currency}`
  return `${Math.round(value).toLocaleString('en')} ${unit.toLowerCase()}`
}
