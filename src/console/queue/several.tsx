import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { toast } from '../notices.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Method } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import { CommentField, denyPresets } from '../request/comment.tsx'
import { plural } from '../text.ts'
import type { HitlSummary, VerdictOutcome } from '../types.ts'
import { chosenRows, clearChoice, groupOf, unchoose } from './choice.ts'

/** Most requests in one call. */
const most = 100

type Verdict = 'approve' | 'deny'

/** One verdict on several requests. */
export function Several() {
  const [asks, setAsks] = useState<Verdict>()
  const views = chosenRows.value.map(({ view }) => view)
  const isGroup = new Set(views.map(groupOf)).size === 1
  // The dialog outlasts the selection: requests that are decided are no longer selected, and it shows their outcomes.
  return (
    <>
      {views.length > 0 && (
        <section class="several" aria-label="Selected requests">
          <span>{views.length} selected</span>
          <button
            type="button"
            disabled={!isGroup}
            title={isGroup ? '' : approvesAGroup}
            onClick={() => setAsks('approve')}
          >
            Approve…
          </button>
          <button type="button" onClick={() => setAsks('deny')}>
            Deny…
          </button>
          <button type="button" class="plain" onClick={clearChoice}>
            Clear
          </button>
          {!isGroup && <p class="hint">{approvesAGroup}</p>}
        </section>
      )}
      {asks !== undefined && <SeveralDialog verdict={asks} views={views} onClose={() => setAsks(undefined)} />}
    </>
  )
}

const approvesAGroup = 'Only requests of one agent, rule, method and path are approved together.'

interface SeveralProps {
  readonly verdict: Verdict
  readonly views: readonly HitlSummary[]
  readonly onClose: () => void
}

function SeveralDialog({ verdict, views, onClose }: SeveralProps) {
  // What is decided is what was listed when the dialog opened.
  const [listed] = useState(views)
  const items = listed.slice(0, most)
  const [comment, setComment] = useState('')
  const [outcomes, setOutcomes] = useState<readonly VerdictOutcome[]>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const verb = verdict === 'approve' ? 'Approve' : 'Deny'
  const decide = async () => {
    setBusy(true)
    const body = { verdict, items: items.map(({ id, digest }) => ({ id, digest })), ...(comment !== '' && { comment }) }
    const answer = await call<{ readonly outcomes: readonly VerdictOutcome[] }>('POST', '/hitl/verdicts', { body })
    setBusy(false)
    if (!answer.ok) return setProblem(answer.failure.detail)
    const failed = answer.data.outcomes.filter(({ outcome }) => outcome === 'refused').length
    toast(
      `${plural(items.length - failed, 'request')} ${verdict === 'approve' ? 'approved' : 'denied'}${failed > 0 ? `, ${failed} not` : ''}`,
      failed > 0 ? 'bad' : 'good',
    )
    if (failed === 0) finish()
    else setOutcomes(answer.data.outcomes)
  }
  const finish = () => {
    unchoose(items)
    onClose()
  }
  const close = outcomes === undefined ? onClose : finish
  return (
    <Dialog title={`${verb} ${plural(items.length, 'request')}`} onClose={close}>
      {listed.length > most && (
        <p class="notice warn">
          The first {most} of {listed.length}; the others stay selected.
        </p>
      )}
      <ol class="items">
        {items.map(({ id, method, url, agentName }) => (
          <li key={id}>
            <Method name={method} /> <Text value={url} limit={300} /> <span class="hint">{agentName}</span>
            <OutcomeOf outcome={outcomes?.find(one => one.id === id)} />
          </li>
        ))}
      </ol>
      {outcomes === undefined && (
        <CommentField value={comment} onInput={setComment} presets={verdict === 'deny' ? denyPresets : []} isFirst />
      )}
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={close}>
          {outcomes === undefined ? 'Cancel' : 'Close'}
        </button>
        {outcomes === undefined && (
          <button
            type="button"
            class={verdict === 'approve' ? 'primary' : 'danger'}
            disabled={isBusy}
            onClick={() => void decide()}
          >
            {isBusy ? 'Sending…' : verdict === 'approve' ? `Approve and send ${items.length}` : `Deny ${items.length}`}
          </button>
        )}
      </p>
    </Dialog>
  )
}

function OutcomeOf({ outcome }: { readonly outcome: VerdictOutcome | undefined }) {
  if (outcome === undefined) return null
  const { outcome: what, upstreamStatus, detail } = outcome
  const texts = {
    denied: 'denied',
    counted: 'approval counted; another is needed',
    sent: `sent, ${upstreamStatus}`,
    refused: detail,
  }
  return <p class={what === 'refused' ? 'bad-text' : 'good-text'}>{texts[what]}</p>
}
