import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { toast } from '../notices.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Problem } from '../parts/states.tsx'
import { CommentField, denyPresets } from '../request/comment.tsx'
import { plural } from '../text.ts'
import type { HitlSummary, VerdictOutcome } from '../types.ts'
import { unchoose } from './choice.ts'
import { opened } from './opened.ts'
import { SeveralTable, useCompared } from './several-table.tsx'
import { rows } from './store.ts'

/** Most requests in one call. */
const most = 100

export type Verdict = 'approve' | 'deny'

interface SeveralProps {
  readonly verdict: Verdict
  readonly views: readonly HitlSummary[]
  readonly onClose: () => void
}

/** Shows what differs in the requests before it decides them. */
export function SeveralDialog({ verdict, views, onClose }: SeveralProps) {
  // What is decided is what was listed when the dialog opened, as far as it still waits.
  const [listed] = useState(views)
  const items = listed.slice(0, most)
  const compared = useCompared(items)
  const [comment, setComment] = useState('')
  const [outcomes, setOutcomes] = useState<readonly VerdictOutcome[]>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const isApproval = verdict === 'approve'
  const waiting = items.filter(({ id }) => rows.value.get(id)?.ending === undefined && rows.value.has(id))
  const isReady = !isBusy && waiting.length > 0 && (!isApproval || compared !== undefined)
  const decide = async () => {
    if (!isReady) return
    setBusy(true)
    const body = {
      verdict,
      items: waiting.map(({ id, digest }) => ({ id, digest })),
      ...(comment !== '' && { comment }),
    }
    const answer = await call<{ readonly outcomes: readonly VerdictOutcome[] }>('POST', '/hitl/verdicts', { body })
    setBusy(false)
    if (!answer.ok) return setProblem(answer.failure.detail)
    const failed = answer.data.outcomes.filter(({ outcome }) => outcome === 'refused').length
    toast(
      `${plural(waiting.length - failed, 'request')} ${isApproval ? 'approved' : 'denied'}${failed > 0 ? `, ${failed} not` : ''}`,
      failed > 0 ? 'bad' : 'good',
    )
    setOutcomes(answer.data.outcomes)
  }
  const finish = () => {
    unchoose(items)
    onClose()
  }
  const isOver = outcomes !== undefined || waiting.length === 0
  const close = outcomes === undefined ? onClose : finish
  const unopened = items.filter(({ id }) => !opened.value.has(id)).length
  return (
    <Dialog
      title={`${isApproval ? 'Approve' : 'Deny'} ${plural(items.length, 'request')}`}
      onClose={close}
      onConfirm={() => void decide()}
      isWide
    >
      {listed.length > most && (
        <p class="notice warn">
          The first {most} of {listed.length}; the others stay selected.
        </p>
      )}
      {unopened > 0 && !isOver && (
        <p class="notice warn">
          You have not opened {unopened} of {items.length}.
        </p>
      )}
      <SeveralTable items={items} compared={compared} outcomes={outcomes} />
      {!isOver && <CommentField value={comment} onInput={setComment} presets={isApproval ? [] : denyPresets} isFirst />}
      <Problem text={problem} />
      {outcomes === undefined && waiting.length === 0 && (
        <p class="notice warn" role="alert">
          None of them waits any more. Nothing was sent from here.
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={close}>
          {isOver ? 'Close' : 'Cancel'}
        </button>
        {!isOver && (
          <button
            type="button"
            class={isApproval ? 'primary' : 'danger'}
            disabled={!isReady}
            onClick={() => void decide()}
          >
            {verbOf({ isApproval, isBusy, count: waiting.length })}
          </button>
        )}
      </p>
    </Dialog>
  )
}

interface Verb {
  readonly isApproval: boolean
  readonly isBusy: boolean
  readonly count: number
}

function verbOf({ isApproval, isBusy, count }: Verb): string {
  if (isBusy) return 'Sending…'
  return isApproval ? `Approve and send ${count}` : `Deny ${count}`
}
