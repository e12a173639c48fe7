import { useState } from 'preact/hooks'
import { change } from '../api.ts'
import { timeText } from '../text.ts'
import type { BudgetHolder } from '../types.ts'
import { Act } from './act.tsx'

interface RaiseProps {
  readonly state: BudgetHolder
  readonly onRaised: () => void
}

/** Adds to the limit of one holder, in this window alone. */
export function Raise({ state, onRaised }: RaiseProps) {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" aria-label={`Raise ${state.budget} of ${nameOf(state)}`} onClick={() => setOpen(true)}>
        Raise…
      </button>
      {isOpen && (
        <RaiseDialog
          state={state}
          onClose={close}
          onDone={() => {
            close()
            onRaised()
          }}
        />
      )}
    </>
  )
}

const nameOf = ({ holder, holderName }: BudgetHolder): string =>
  holder === '*' ? 'all agents' : (holderName ?? holder)

interface RaiseDialogProps {
  readonly state: BudgetHolder
  readonly onClose: () => void
  readonly onDone: () => void
}

function RaiseDialog({ state, onClose, onDone }: RaiseDialogProps) {
  const { budget, holder, unit, currency, resetsAt } = state
  const [amount, setAmount] = useState(Number.NaN)
  const [comment, setComment] = useState('')
  const body = { holder, amount, ...(comment !== '' && { comment }) }
  const act = async () => {
    const failure = await change('POST', `/budgets/${encodeURIComponent(budget)}/raises`, { body })
    const [error] = failure?.problem.errors ?? []
    return failure !== undefined && error !== undefined
      ? { ...failure, detail: `${error.field} ${error.message}` }
      : failure
  }
  return (
    <Act
      title={`Raise ${budget} of ${nameOf(state)}`}
      verb="Raise"
      tone="primary"
      isBlocked={!(amount > 0)}
      act={act}
      said="The budget is raised."
      onClose={onClose}
      onDone={onDone}
    >
      <label>
        By, in {unit === 'Money' ? currency : unit.toLowerCase()}
        <input
          type="number"
          min={0}
          step="any"
          data-first
          value={Number.isNaN(amount) ? '' : amount}
          onInput={event => setAmount(event.currentTarget.valueAsNumber)}
        />
      </label>
      <label>
        Why, for the audit trail
        <input type="text" maxLength={1_000} value={comment} onInput={event => setComment(event.currentTarget.value)} />
      </label>
      <p class="hint">
        It counts until {timeText(resetsAt)}. All raises until then may add ten times the limit. Other gateways honour
        it within a second.
      </p>
    </Act>
  )
}
