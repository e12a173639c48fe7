import { useState } from 'preact/hooks'
import { GrantDialog, scopeOf, usualTerms } from '../request/approve-dialog.tsx'
import { mayGrantLater } from '../request/verdicts.tsx'
import { hrefOf } from '../router.ts'
import { ownText } from '../session.ts'
import type { HitlRequest } from '../types.ts'

interface GrantProps {
  /** Undefined: it is made from what was recorded. */
  readonly view: HitlRequest | undefined
  readonly agentId: string | undefined
}

/** A grant lets requests like an approved one pass for a while. What it would cover is said first. */
export function GrantPart({ view, agentId }: GrantProps) {
  const [isAsked, setAsked] = useState(false)
  return (
    <section class="card stack" aria-labelledby="grant">
      <h2 id="grant">A grant</h2>
      {view === undefined ? (
        <p class="hint">
          A grant comes from one approved request.{' '}
          {agentId !== undefined && <a href={`#/history?status=approved&agentId=${agentId}`}>Those of the agent</a>}
        </p>
      ) : (
        <>
          <p>{scopeOf(view, usualTerms.minutes, usualTerms.maxUses)}</p>
          {mayGrantLater(view) ? (
            <p class="actions">
              <button type="button" onClick={() => setAsked(true)}>
                Make the grant…
              </button>
            </p>
          ) : (
            <p class="hint">
              {whyNot(view)} <a href={hrefOf('requests', view.id)}>The request</a>
            </p>
          )}
        </>
      )}
      {isAsked && view !== undefined && (
        <GrantDialog
          view={view}
          onClose={() => setAsked(false)}
          onDone={() => setAsked(false)}
          onEnded={() => {}}
          onBusy={() => {}}
        />
      )}
    </section>
  )
}

function whyNot(view: HitlRequest): string {
  const { status, replay, budget, approvalsNeeded = 1 } = view
  if (status === 'Pending') return 'It still waits: whoever approves it may give the grant with the approval.'
  if (budget !== undefined) return 'It was held at the limit of a budget, which a grant does not pass.'
  if (approvalsNeeded > 1) return 'Its rule asks for two approvals, which a grant does not replace.'
  if (status !== 'Approved' || replay !== 'completed')
    return 'Only a request that was approved and answered can have one.'
  return ownText(view) ?? 'You may not give it: that needs the role reviewer or admin.'
}
