import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import type { HitlRequest } from '../types.ts'

/** What became of a request that was sent without an answer, and what to do next. */
export function OutcomeNote({ view: { id, replay } }: { readonly view: HitlRequest }) {
  if (replay !== 'failed' && replay !== 'unknown') return null
  return (
    <div class="notice warn stack">
      <p>
        <strong>
          {replay === 'failed'
            ? 'It was sent, and no answer came.'
            : 'The gateway stopped while it sent this, so nobody knows whether it arrived.'}
        </strong>{' '}
        What it asks for may have happened. The agent was told that the outcome is {replay}.
      </p>
      <ol class="steps">
        <li>Look at the upstream: did it happen?</li>
        <li>If it did, nothing is to be done here. If it did not, send it again.</li>
        {mayRead.value && (
          <li>
            <a href={`#/audit?subject=${encodeURIComponent(id)}`}>Its entries in the audit trail</a> say when it was
            sent, and by whom. <a href={hrefOf('history')}>History</a> has others that failed.
          </li>
        )}
      </ol>
    </div>
  )
}
