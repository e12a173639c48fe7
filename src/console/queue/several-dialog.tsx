import { useState } from 'preact/hooks'
import { toast } from '../notices.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Problem } from '../parts/states.tsx'
import { barOf, barText, useAsking } from '../request/asking.ts'
import { CommentField, denyPresets } from '../request/comment.tsx'
import { plural } from '../text.ts'
import type { HitlSummary, VerdictOutcome } from '../types.ts'
import { goOn, unchoose } from './choice.ts'
import { opened } from './opened.ts'
import { SeveralTable, useCompared } from './several-table.tsx'
import { type Choice, choicesOn, decideEach, type Verdict } from './several-verdicts.ts'
import { rows } from './store.ts'

/** Most requests in one call. */
const most = 100

interface SeveralProps {
  readonly verdict: Verdict
  readonly views: readonly HitlSummary[]
  readonly onClose: () => void
}

/** Shows what differs in the requests before it decides them, and which of them cannot be. */
export function SeveralDialog({ verdict, views, onClose }: SeveralProps) {
  // What is decided is what was listed when the dialog opened, as far as it still waits.
  const [listed] = useState(views)
  const items = listed.slice(0, most)
  const compared = useCompared(items)
  // Only those of one agent are approved together.
  const asking = useAsking({ agentId: listed[0]?.agentId ?? '', status: 'Pending' })
  const [comment, setComment] = useState('')
  const [outcomes, setOutcomes] = useState<readonly VerdictOutcome[]>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const isApproval = verdict === 'approve'
  const bar = isApproval ? barOf(asking) : undefined
  const waiting = items.filter(({ id }) => rows.value.get(id)?.ending === undefined && rows.value.has(id))
  const [exceptions, setExceptions] = useState<ReadonlyMap<string, Choice>>(new Map())
  const choicesOf = (view: HitlSummary) => choicesOn(view, verdict, bar !== undefined)
  const choiceOf = (view: HitlSummary) => {
    const choice = exceptions.get(view.id) ?? verdict
    return choicesOf(view).includes(choice) ? choice : 'leave'
  }
  const countOf = (choice: Choice) => waiting.filter(view => choiceOf(view) === choice).length
  const counts = { approve: countOf('approve'), deny: countOf('deny') }
  const isRead = compared !== undefined && (asking.data ?? asking.failure) !== undefined
  const isReady = !isBusy && counts.approve + counts.deny > 0 && (!isApproval || isRead)
  const decide = async () => {
    if (!isReady) return
    setBusy(true)
    const { outcomes: all, failure } = await decideEach(waiting, choiceOf, comment)
    setBusy(false)
    setProblem(failure?.detail)
    if (all.length === 0) return
    const failed = all.filter(({ outcome }) => outcome === 'refused').length
    toast(toldOf(all), failed > 0 || failure !== undefined ? 'bad' : 'good')
    setOutcomes(all)
  }
  const finish = () => {
    unchoose(items)
    onClose()
    goOn()
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
      {bar !== undefined && !isOver && (
        <p class="notice warn" role="alert">
          {barText(bar, items.length)}
        </p>
      )}
      <SeveralTable
        items={items}
        compared={compared}
        outcomes={outcomes}
        verdict={isOver ? undefined : verdict}
        choicesOf={choicesOf}
        choiceOf={choiceOf}
        onChoice={(id, choice) => setExceptions(new Map(exceptions).set(id, choice))}
      />
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
            {isBusy ? 'Sending…' : verbOf(verdict, counts)}
          </button>
        )}
      </p>
    </Dialog>
  )
}

function verbOf(verdict: Verdict, { approve, deny }: Readonly<Record<Verdict, number>>): string {
  if (verdict === 'deny' || (approve === 0 && deny > 0)) return `Deny ${deny}`
  return `Approve and send ${approve}${deny > 0 ? `, deny ${deny}` : ''}`
}

/** What became of them, counted. */
function toldOf(outcomes: readonly VerdictOutcome[]): string {
  const countOf = (...of: readonly VerdictOutcome['outcome'][]) =>
    outcomes.filter(({ outcome }) => of.includes(outcome)).length
  const [approved, denied, refused] = [countOf('sent', 'counted'), countOf('denied'), countOf('refused')]
  const parts = [
    ...(approved > 0 ? [`${plural(approved, 'request')} approved`] : []),
    ...(denied > 0 ? [`${plural(denied, 'request')} denied`] : []),
    ...(refused > 0 ? [`${refused} not decided`] : []),
  ]
  return parts.join(', ')
}
