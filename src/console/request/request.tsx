import { useEffect, useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { now } from '../clock.ts'
import { Mark } from '../parts/marks.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import { endingText } from '../queue/ending.ts'
import { noteOpened } from '../queue/opened.ts'
import type { Row } from '../queue/store.ts'
import { agoText, timeText } from '../text.ts'
import type { HitlRequest } from '../types.ts'
import { Asker } from './asker.tsx'
import { readRequest } from './exact.ts'
import { Findings } from './findings.tsx'
import { outcomeOf } from './outcome.ts'
import { Sent } from './sent.tsx'
import { Verdicts } from './verdicts.tsx'
import { Why } from './why.tsx'

interface RequestProps {
  readonly id: string
  /** Of the queue; undefined when it is not in it. */
  readonly row: Row | undefined
}

/** One request: what will be sent, why it was held, who asks, how long is left. */
export function RequestView({ id, row }: RequestProps) {
  const [view, setView] = useState<HitlRequest | Failure>()
  const read = async () => {
    const answer = await readRequest(id)
    setView(before => {
      if (answer.ok) return answer.data
      // What is on the screen is not lost to a gateway that restarts.
      const isKept = answer.failure.status !== 404 && before !== undefined && 'id' in before
      return isKept ? before : answer.failure
    })
  }
  const stage = `${row?.ending?.what} ${row?.ending?.replay} ${row?.view.approvedBy?.length} ${row?.view.expiresAt}`
  // It changed: by this reviewer, another one, or the clock.
  useEffect(() => void read(), [id, stage])

  useEffect(() => {
    if (view !== undefined && 'id' in view) noteOpened(view.id)
  }, [view])

  if (view === undefined) return <Loading />
  if ('code' in view)
    return view.status === 404 ? <Gone row={row} /> : <Failed failure={view} onRetry={() => void read()} />
  return (
    <article class="request" aria-labelledby="request-title">
      <RequestHead view={view} row={row} />
      <Sent view={view} />
      <Why view={view} />
      <Asker view={view} />
      <Verdicts view={view} row={row} onDone={() => void read()} />
    </article>
  )
}

function RequestHead({ view, row }: { readonly view: HitlRequest; readonly row: Row | undefined }) {
  const waits = view.status === 'Pending' && row?.ending === undefined
  const what = view.title ?? view.operation
  return (
    <header class="request-head">
      {what != null && (
        <p class="what">
          <Text value={what} />
        </p>
      )}
      <p class="facts" id="request-title">
        <Mark text={row?.ending === undefined ? outcomeOf(view) : endingText(row.ending)} tone={toneOf(view)} />
        {waits ? (
          <TimeLeft from={view.timestamp} until={view.expiresAt} />
        ) : (
          view.decidedAt != null && <span>{timeText(view.decidedAt)}</span>
        )}
        <span title={timeText(view.timestamp)}>asked {agoText(view.timestamp, now.value)}</span>
        <a href={`#/requests/${view.id}`}>Link to this request</a>
      </p>
      {view.comment != null && (
        <blockquote class="said">
          <Text value={view.comment} />
        </blockquote>
      )}
      <Findings view={view} />
    </header>
  )
}

function toneOf({ status, replay }: HitlRequest) {
  if (status === 'Pending') return replay === 'unknown' ? 'warn' : 'accent'
  if (status === 'Denied') return 'bad'
  return replay === 'failed' || replay === 'unknown' ? 'warn' : 'good'
}

function Gone({ row }: { readonly row: Row | undefined }) {
  return (
    <Empty
      title={
        row?.ending?.what === 'expired' ? 'This request expired while it was open' : 'This request is not here any more'
      }
    >
      <p>{row === undefined ? 'It expired, was deleted, or never was.' : 'Nothing was sent. The agent was told.'}</p>
      <p>
        <a href="#/history">History</a>
      </p>
    </Empty>
  )
}
