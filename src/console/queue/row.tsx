import { placeOf } from '../body/url.ts'
import { Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import { plural } from '../text.ts'
import { chosen, open, openId, toggle } from './choice.ts'
import { endingText } from './ending.ts'
import { opened } from './opened.ts'
import type { Row } from './store.ts'
import { findingsOf, riskOf, What, whatOf } from './what.tsx'

interface RowProps {
  readonly row: Row
  /** Pixels from the beginning of the list. */
  readonly top: number
  readonly at: number
  readonly of: number
}

/** What would happen, who asks for it, and how long is left. */
export function QueueRow({ row, top, at, of }: RowProps) {
  const { view, ending } = row
  const { host, path } = placeOf(view.url)
  const isOpen = openId.value === view.id
  const isNew = ending === undefined && !opened.value.has(view.id)
  const what = whatOf(view)
  return (
    <li
      class={`row ${isOpen ? 'open' : ''} ${isNew ? 'new' : ''} ${ending === undefined ? '' : 'over'}`}
      style={{ transform: `translateY(${top}px)` }}
      aria-setsize={of}
      aria-posinset={at + 1}
    >
      <input
        type="checkbox"
        aria-label={`Select ${what ?? `${view.method} ${host}${path}`}`}
        checked={chosen.value.has(view.id)}
        disabled={ending !== undefined}
        onClick={event => toggle(view.id, event.shiftKey)}
      />
      <a
        href={`#/?id=${view.id}`}
        aria-current={isOpen ? 'true' : undefined}
        onClick={event => openFrom(event, view.id)}
      >
        <What view={view} />
        <span class="row-who">
          <Text value={view.agentName ?? 'unknown agent'} limit={60} />
          {view.ownerId !== undefined && (
            <>
              , <Text value={view.ownerId} limit={40} />
            </>
          )}
          {what !== null && (
            <>
              {' '}
              · {view.method} <Text value={host + path} limit={80} />
            </>
          )}{' '}
          · <Text value={view.rule ?? view.reason} limit={60} />
        </span>
        <span class="row-state">
          {ending === undefined ? <TimeLeft from={view.timestamp} until={view.expiresAt} hasBar /> : endingText(ending)}
          <Marks row={row} isNew={isNew} />
        </span>
      </a>
    </li>
  )
}

function Marks({ row: { view }, isNew }: { readonly row: Row; readonly isNew: boolean }) {
  const { approvalsNeeded = 1, approvedBy = [] } = view
  const findings = findingsOf(view)
  const risk = riskOf(view)
  return (
    <>
      {risk !== undefined && ` · risk ${risk.toFixed(2)}`}
      {approvalsNeeded > 1 && ` · ${approvedBy.length} of ${approvalsNeeded} approvals`}
      {findings > 0 && ` · ${plural(findings, 'finding')}`}
      {isNew && ' · not opened'}
    </>
  )
}

/** A click keeps the filter; a new tab gets the link. */
function openFrom(event: MouseEvent, id: string): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  open(id)
}
