import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { placeOf } from '../body/url.ts'
import { now } from '../clock.ts'
import { AgentBudgets } from '../parts/budgets.tsx'
import { makeHref } from '../parts/make-link.ts'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Said, Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import { takesFocus } from '../queue/choice.ts'
import { endingText } from '../queue/ending.ts'
import { noteOpened } from '../queue/opened.ts'
import type { Row } from '../queue/store.ts'
import { whatOf } from '../queue/what.tsx'
import { agoText, timeText } from '../text.ts'
import { usePageTitle } from '../title.ts'
import type { HitlRequest } from '../types.ts'
import { Asker } from './asker.tsx'
import { useAsking } from './asking.ts'
import { Changes, useEarlier } from './changes.tsx'
import { changesIn } from './differences.ts'
import { readRequest } from './exact.ts'
import { Findings } from './findings.tsx'
import { OutcomeMark } from './outcome-mark.tsx'
import { OutcomeNote } from './outcome-note.tsx'
import { Sent } from './sent.tsx'
import { expiredText, type VerdictProps, Verdicts } from './verdicts.tsx'
import { Why } from './why.tsx'

interface RequestProps {
  readonly id: string
  /** Of the queue; undefined when it is not in it. */
  readonly row: Row | undefined
  /** A verdict was given here. Absent: the request has the page for itself. */
  readonly onDecided?: () => void
}

/** One request: what will be sent, why it was held, who asks, how long is left. */
export function RequestView({ id, row, onDecided }: RequestProps) {
  const [view, setView] = useState<HitlRequest | Failure>()
  /** What became of the request under an open dialog. */
  const [ended, setEnded] = useState<string>()
  const isAsked = useRef(false)
  const read = async () => {
    const answer = await readRequest(id)
    if (!answer.ok && answer.failure.status === 404 && isAsked.current) setEnded(expiredText)
    setView(before => {
      if (answer.ok) return answer.data
      // What is on the screen is not lost to a gateway that restarts.
      const isKept = answer.failure.status !== 404 && before !== undefined && 'id' in before
      return isKept ? before : answer.failure
    })
  }
  const { ending, view: line } = row ?? {}
  const stage = `${ending?.what} ${ending?.replay} ${line?.approvedBy?.length} ${line?.expiresAt}`
  // It changed: by this reviewer, another one, or the clock.
  useEffect(() => void read(), [id, stage])
  const shown = view !== undefined && 'id' in view ? view : undefined
  useTimeout(shown?.status === 'Pending' ? (line?.expiresAt ?? shown.expiresAt) : undefined, () => void read())
  useEffect(() => {
    if (shown !== undefined) noteOpened(id)
    if (shown !== undefined && takesFocus(id)) focusOn('sent')
  }, [shown])

  if (view === undefined) return <Loading />
  if ('code' in view) {
    if (view.status !== 404) return <Failed failure={view} onRetry={() => void read()} />
    return (
      <>
        <Ended text={ended} />
        <Gone row={row} />
      </>
    )
  }
  const decided = () => {
    if (onDecided === undefined) focusOn('sent')
    else onDecided()
    void read()
  }
  return (
    <OpenRequest
      view={view}
      row={row}
      ended={ended}
      isPage={onDecided === undefined}
      onAsk={isOpen => (isAsked.current = isOpen)}
      onDone={decided}
      onEnded={setEnded}
      onStale={() => void read()}
    />
  )
}

/** Characters of the title of the window. */
const longestName = 120

interface OpenProps extends Omit<VerdictProps, 'asking'> {
  readonly ended: string | undefined
  /** Whether the title of the window is that of the request. */
  readonly isPage: boolean
}

function OpenRequest({ ended, isPage, onEnded, onStale, ...props }: OpenProps) {
  const { view, row } = props
  const name = whatOf(view) ?? `${view.method} ${placeOf(view.url).path}`
  usePageTitle(isPage ? name.slice(0, longestName) : undefined)
  const earlier = useEarlier(view)
  const changes = useMemo(() => (typeof earlier === 'object' ? changesIn(earlier.comparisons) : []), [earlier])
  // What is sent may be long, and is the same however often the agent is read again.
  const content = useMemo(() => <Content view={view} earlier={earlier} changes={changes} />, [view, earlier, changes])
  const asking = useAsking(view)
  const end = (text: string) => {
    onEnded(text)
    // It may have ended since the agent is barred.
    asking.again()
  }
  const stale = () => {
    onStale()
    asking.again()
  }
  return (
    <article class="request" aria-labelledby="request-title">
      <div class="request-top">
        <RequestHead view={view} row={row} />
        <div class="verdicts">
          <Ended text={ended} />
          <Verdicts {...props} asking={asking} onEnded={end} onStale={stale} />
        </div>
      </div>
      <div class="request-columns">
        {content}
        <div>
          <Why view={view} />
          {view.budget !== undefined && <AgentBudgets agentId={view.agentId} only={view.budget.name} />}
          <Asker view={view} asking={asking} />
        </div>
      </div>
    </article>
  )
}

interface ContentProps {
  readonly view: HitlRequest
  readonly earlier: ReturnType<typeof useEarlier>
  readonly changes: ReturnType<typeof changesIn>
}

function Content({ view, earlier, changes }: ContentProps) {
  return (
    <div>
      <OutcomeNote view={view} />
      <Notes view={view} />
      <Changes earlier={earlier} />
      <Sent view={view} changes={changes} />
    </div>
  )
}

const focusOn = (id: string) => document.getElementById(id)?.focus()

/** Longest delay of a timer, milliseconds. */
const longestMs = 2_147_483_647

/** Calls `then` a second after the time, in case no event reports it. */
function useTimeout(until: string | undefined, then: () => void): void {
  useEffect(() => {
    if (until === undefined) return
    const timer = setTimeout(then, Math.min(longestMs, Math.max(0, Date.parse(until) - Date.now()) + 1_000))
    return () => clearTimeout(timer)
  }, [until])
}

/** Why a dialog closed by itself. It takes the focus, which the dialog had. */
function Ended({ text }: { readonly text: string | undefined }) {
  const place = useRef<HTMLParagraphElement>(null)
  useEffect(() => place.current?.focus(), [text])
  if (text === undefined) return null
  return (
    <p class="notice bad ended" role="alert" tabIndex={-1} ref={place}>
      {text}
    </p>
  )
}

function RequestHead({ view, row }: { readonly view: HitlRequest; readonly row: Row | undefined }) {
  const waits = view.status === 'Pending' && row?.ending === undefined
  return (
    <header class="request-head">
      <Sentence view={view} />
      <p class="facts">
        <OutcomeMark of={view} text={row?.ending && endingText(row.ending)} />
        {waits ? (
          <TimeLeft from={view.timestamp} until={view.expiresAt} hasBar />
        ) : (
          view.decidedAt != null && <span>{timeText(view.decidedAt)}</span>
        )}
        <span title={timeText(view.timestamp)}>asked {agoText(view.timestamp, now.value)}</span>
        <a href={`#/requests/${view.id}`} title="Link to this request, for a colleague">
          Permalink
        </a>
        <a href={makeHref({ hitl: view.id })}>Make from this</a>
      </p>
    </header>
  )
}

/** Who wants what where, in the words of the rule when it has any. */
function Sentence({ view }: { readonly view: HitlRequest }) {
  const { agentName, ownerId, method, url } = view
  const { host, path } = placeOf(url)
  const what = whatOf(view)
  return (
    <h2 id="request-title" tabIndex={-1} class="sentence">
      <Text value={agentName ?? 'An agent'} limit={120} />
      {ownerId !== undefined && (
        <>
          {' '}
          of <Text value={ownerId} limit={120} />
        </>
      )}{' '}
      asks for{' '}
      <strong class="what">
        <Text value={what ?? `${method} ${path}`} limit={400} />
      </strong>{' '}
      at <Text value={host} limit={200} />
    </h2>
  )
}

/** The reviewer's comment, and what detectors found. */
function Notes({ view }: { readonly view: HitlRequest }) {
  return (
    <>
      {view.comment != null && <Said value={view.comment} />}
      <Findings view={view} />
    </>
  )
}

function Gone({ row }: { readonly row: Row | undefined }) {
  return (
    <Empty
      title={
        row?.ending?.what === 'expired' ? 'This request expired while it was open' : 'This request is not here any more'
      }
    >
      <p>
        {row === undefined
          ? 'It has expired, was deleted, or the link is wrong.'
          : 'Nothing was sent. The agent got the outcome.'}
      </p>
      <p>
        <a href="#/history">History</a>
      </p>
    </Empty>
  )
}
