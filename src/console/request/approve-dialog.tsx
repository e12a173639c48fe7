import { useState } from 'preact/hooks'
import { change, type Failure, failureOf, offline, send } from '../api.ts'
import { placeOf } from '../body/url.ts'
import { drafts, setDraft } from '../drafts.ts'
import { announce, toast } from '../notices.ts'
import { ownBudgetText } from '../session.ts'
import { timeText } from '../text.ts'
import type { GrantTerms, HeldBudget, HitlRequest } from '../types.ts'
import { CommentField } from './comment.tsx'
import { Confirm, type DialogProps } from './confirm.tsx'
import { keepAnswer } from './sent-answer.ts'

/** Sends what is on the screen, with or without a grant for the next requests like it. */
export function ApproveDialog({ withGrant, ...props }: DialogProps & { readonly withGrant: boolean }) {
  const { view } = props
  const [terms, setTerms] = useState(usualTerms)
  const [raise, setRaise] = useState(Number.NaN)
  const comment = drafts.value.get(view.id) ?? ''
  const act = async () => {
    const grant = withGrant ? { grant: terms } : {}
    const raised = Number.isNaN(raise) ? {} : { raise: { amount: raise } }
    const failure = await approve(view, { ...(comment !== '' && { comment }), ...grant, ...raised })
    if (failure === undefined) setDraft(view.id, '')
    return failure
  }
  const last = (view.approvalsNeeded ?? 1) - (view.approvedBy?.length ?? 0) <= 1
  return (
    <Confirm
      {...props}
      title={withGrant ? 'Approve, and the next ones too' : 'Approve'}
      verb={last ? 'Approve and send' : 'Approve'}
      tone="primary"
      act={act}
    >
      {!last && <p>Nothing is sent yet: another reviewer must approve it too.</p>}
      {withGrant && <TermsFields view={view} terms={terms} onChange={setTerms} />}
      {view.budget !== undefined && last && (
        <RaiseField budget={view.budget} ownerId={view.ownerId} value={raise} onInput={setRaise} />
      )}
      <CommentField value={comment} onInput={text => setDraft(view.id, text)} isFirst />
    </Confirm>
  )
}

/** Gives a grant from a request that was approved before. */
export function GrantDialog(props: DialogProps) {
  const { view } = props
  const [terms, setTerms] = useState(usualTerms)
  const [key] = useState(() => crypto.randomUUID())
  const act = () => change('POST', `/hitl/${view.id}/grant`, { body: terms, digest: view.digest, idempotencyKey: key })
  return (
    <Confirm
      {...props}
      title="Grant the next ones"
      verb="Give the grant"
      tone="primary"
      said="The grant is in force."
      act={act}
    >
      <TermsFields view={view} terms={terms} onChange={setTerms} />
    </Confirm>
  )
}

export const usualTerms: GrantTerms = { minutes: 60, maxUses: 10 }

interface TermsProps {
  readonly view: HitlRequest
  readonly terms: GrantTerms
  readonly onChange: (terms: GrantTerms) => void
}

function TermsFields({ view, terms, onChange }: TermsProps) {
  const { minutes, maxUses } = terms
  return (
    <fieldset>
      <legend>Grant</legend>
      <div class="inline">
        <label>
          Minutes
          <input
            type="number"
            min={1}
            max={480}
            value={minutes}
            onInput={event => onChange({ ...terms, minutes: event.currentTarget.valueAsNumber })}
          />
        </label>
        <label>
          Uses
          <input
            type="number"
            min={1}
            max={1000}
            value={maxUses}
            onInput={event => onChange({ ...terms, maxUses: event.currentTarget.valueAsNumber })}
          />
        </label>
      </div>
      <p>{scopeOf(view, minutes, maxUses)}</p>
    </fieldset>
  )
}

interface RaiseProps {
  readonly budget: HeldBudget
  readonly ownerId: string | undefined
  /** NaN: it is not raised. */
  readonly value: number
  readonly onInput: (amount: number) => void
}

/** Without a raise this one call passes, and the next one is held again. */
function RaiseField({ budget: { name, of, holder, resetsAt }, ownerId, value, onInput }: RaiseProps) {
  const own = ownBudgetText({ of, holder, holderOwner: of === 'Agent' ? (ownerId ?? null) : null })
  if (own !== undefined)
    return <p class="hint">{`The budget ${name} is used up. ${own} This call alone passes, and counts.`}</p>
  return (
    <label>
      Raise the budget {name} by
      <input
        type="number"
        min={0}
        step="any"
        value={Number.isNaN(value) ? '' : value}
        onInput={event => onInput(event.currentTarget.valueAsNumber)}
      />
      <span class="hint">
        Until {timeText(resetsAt)}, for the next calls too. Empty: this call alone passes, and counts.
      </span>
    </label>
  )
}

/** What a grant would let pass, in words. */
export function scopeOf({ agentName, method, url, rule }: HitlRequest, minutes: number, uses: number): string {
  const { origin, path } = placeOf(url)
  return `For ${minutes} minutes, up to ${uses} more requests of ${agentName ?? 'this agent'} pass without review when they are ${method} ${origin}${path}, with any query and body, under the rule ${rule ?? 'that is the default'}. Deny rules and the risk threshold still hold.`
}

/** The answer to an approval is the upstream's own: whatever it is, the approval was done unless the gateway refused. */
async function approve(view: HitlRequest, body: object): Promise<Failure | undefined> {
  const { id, digest } = view
  const answer = await send('POST', `/hitl/${id}/approve`, { body, digest })
  if (answer === undefined) return offline
  if (answer.headers.has('Gateway-Error')) return await failureOf(answer)
  if (answer.status === 202 && !answer.headers.has('Gateway-Hitl-Id')) {
    await answer.body?.cancel()
    toast('Approval counted.', 'good')
    return undefined
  }
  announce(`Sent. The upstream answered ${answer.status}.`)
  // The next request need not wait for it.
  void keepAnswer(view, answer)
  return undefined
}

/** Sends a request again of which nobody knows what became. */
export const approveAgain = (view: HitlRequest, comment: string): Promise<Failure | undefined> =>
  approve(view, { resend: true, ...(comment !== '' && { comment }) })
