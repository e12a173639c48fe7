import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { placeOf } from '../body/url.ts'
import { Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import { plural } from '../text.ts'
import { chosen, open, openId, shown, toggle } from './choice.ts'
import { endingText } from './ending.ts'
import { opened } from './opened.ts'
import { type Row, tidy } from './store.ts'
import { findingsOf, What, whatOf } from './what.tsx'

/** Height of a row, pixels; the style sheet has the same. */
const rowHeight = 76
/** Rows drawn above and below the visible ones. */
const margin = 6

/** All requests that wait, of which only those on the screen are drawn. */
export function QueueList() {
  const frame = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(900)
  const list = shown.value
  const id = openId.value

  useLayoutEffect(() => {
    const box = frame.current
    if (box === null) return
    const watch = new ResizeObserver(() => setHeight(box.clientHeight))
    watch.observe(box)
    return () => watch.disconnect()
  }, [])

  // What is over goes away when the reviewer goes on; what is under the pointer stays there.
  useEffect(() => {
    const above = tidy(id)
    if (frame.current !== null && above > 0) frame.current.scrollTop -= above * rowHeight
    reveal(
      frame.current,
      shown.peek().findIndex(({ view }) => view.id === id),
    )
  }, [id])

  const first = Math.max(0, Math.floor(top / rowHeight) - margin)
  const last = Math.min(list.length, Math.ceil((top + height) / rowHeight) + margin)
  return (
    <div class="list-frame" ref={frame} onScroll={event => setTop(event.currentTarget.scrollTop)}>
      <ol class="list" style={{ height: `${list.length * rowHeight}px` }} aria-label="Requests that wait, oldest first">
        {list.slice(first, last).map((row, index) => (
          <QueueRow key={row.view.id} row={row} at={first + index} of={list.length} />
        ))}
      </ol>
    </div>
  )
}

function reveal(frame: HTMLElement | null, at: number): void {
  if (frame === null || at < 0) return
  const from = at * rowHeight
  if (from < frame.scrollTop) frame.scrollTop = from
  else if (from + rowHeight > frame.scrollTop + frame.clientHeight)
    frame.scrollTop = from + rowHeight - frame.clientHeight
}

function QueueRow({ row, at, of }: { readonly row: Row; readonly at: number; readonly of: number }) {
  const { view, ending } = row
  const { host, path } = placeOf(view.url)
  const isOpen = openId.value === view.id
  const isNew = ending === undefined && !opened.value.has(view.id)
  const what = whatOf(view)
  const findings = findingsOf(view)
  return (
    <li
      class={`row ${isOpen ? 'open' : ''} ${isNew ? 'new' : ''} ${ending === undefined ? '' : 'over'}`}
      style={{ transform: `translateY(${at * rowHeight}px)` }}
      aria-setsize={of}
      aria-posinset={at + 1}
    >
      <input
        type="checkbox"
        aria-label={`Select ${what ?? `${view.method} ${host}${path}`}`}
        checked={chosen.value.has(view.id)}
        disabled={ending !== undefined}
        onChange={() => toggle(view.id)}
      />
      <a
        href={`#/?id=${view.id}`}
        aria-current={isOpen ? 'true' : undefined}
        onClick={event => openFrom(event, view.id)}
      >
        <What view={view} />
        <span class="row-who">
          <Text value={view.agentName ?? 'unknown agent'} limit={60} />
          {what !== null && (
            <>
              {' '}
              · {view.method} <Text value={host + path} limit={80} />
            </>
          )}{' '}
          · <Text value={view.rule ?? view.reason} limit={60} />
        </span>
        <span class="row-state">
          {ending === undefined ? <TimeLeft from={view.timestamp} until={view.expiresAt} /> : endingText(ending)}
          {(view.approvalsNeeded ?? 1) > 1 && ` · ${view.approvedBy?.length ?? 0} of ${view.approvalsNeeded} approvals`}
          {findings > 0 && ` · ${plural(findings, 'finding')}`}
          {isNew && ' · not opened'}
        </span>
      </a>
    </li>
  )
}

/** A click keeps the filter; a new tab gets the link. */
function openFrom(event: MouseEvent, id: string): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  open(id)
}
