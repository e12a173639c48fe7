/** The pending requests, oldest first, as the gateway reports them. */
import { computed, effect, signal } from '@preact/signals'
import { call, type Failure, query } from '../api.ts'
import { type LiveEvent, onEvent } from '../live.ts'
import { announce } from '../notices.ts'
import { notify } from '../notify.ts'
import { me, session } from '../session.ts'
import { plural } from '../text.ts'
import type { HitlSummary } from '../types.ts'

/** What became of a request while it was on the screen. It stays there until the reviewer goes on. */
export interface Ending {
  readonly what: 'approved' | 'denied' | 'withdrawn' | 'expired'
  /** Name of the reviewer; undefined when it was nobody. */
  readonly by?: string | undefined
  /** State of sending an approved request. */
  readonly replay?: 'inFlight' | 'completed' | 'failed' | 'unknown'
  readonly responseStatus?: number | null
}

export interface Row {
  readonly view: HitlSummary
  readonly ending?: Ending
}

export const rows = signal<ReadonlyMap<string, Row>>(new Map())
export const loading = signal<'first' | 'no' | Failure>('first')
export const waitingCount = computed(() => {
  let count = 0
  for (const { ending } of rows.value.values()) if (ending === undefined) count++
  return count
})

/** Requests of which events came since the reading began: the list may be older than they are. */
let touched: Set<string> | undefined
let mustReadAgain = false

/** Reads the list again. One reading at a time: an older answer must not come last. */
export async function readQueue(): Promise<void> {
  mustReadAgain = true
  if (touched !== undefined) return
  while (mustReadAgain) {
    mustReadAgain = false
    touched = new Set()
    const answer = await readAll()
    if (answer.ok) takeList(answer.data, touched)
    else if (rows.peek().size === 0) loading.value = answer.failure
    touched = undefined
  }
}

/** Requests in one answer: as many as the gateway gives. */
const mostAtOnce = 1_000

/** All that wait, some at a time. */
async function readAll() {
  const views: HitlSummary[] = []
  for (let after: string | undefined; ; ) {
    const answer = await call<readonly HitlSummary[]>('GET', `/hitl${query({ limit: mostAtOnce, after })}`)
    if (!answer.ok) return answer
    views.push(...answer.data)
    const last = answer.data.at(-1)
    if (last === undefined || answer.data.length < mostAtOnce) return { ok: true, data: views } as const
    after = `${last.timestamp},${last.id}`
  }
}

/** A request that was decided meanwhile stays where it was, until the reviewer goes on. */
function takeList(views: readonly HitlSummary[], newer: ReadonlySet<string>): void {
  const listed = new Map<string, Row>(views.map(view => [view.id, { view }]))
  for (const [id, row] of rows.peek()) {
    if (newer.has(id) || (!listed.has(id) && row.ending !== undefined)) listed.set(id, row)
    else if (!listed.has(id)) {
      listed.set(id, { ...row, ending: { what: 'expired' } })
      void readEnding(id)
    }
  }
  rows.value = new Map([...listed].sort(([, left], [, right]) => compare(left.view, right.view)))
  loading.value = 'no'
}

function compare(left: HitlSummary, right: HitlSummary): number {
  return left.timestamp < right.timestamp || (left.timestamp === right.timestamp && left.id < right.id) ? -1 : 1
}

/** What became of one that the list no longer has. */
async function readEnding(id: string): Promise<void> {
  const answer = await call<{
    readonly status: string
    readonly pending: HitlSummary & { readonly replay: Ending['replay'] }
  }>('GET', `/hitl/${id}`)
  if (!answer.ok) return
  const { decidedBy, people = {}, replay } = answer.data.pending
  const what = answer.data.status.toLowerCase()
  if (what === 'approved' || what === 'denied' || what === 'withdrawn') {
    change(id, row => ({ ...row, ending: { what, by: people[decidedBy ?? ''], ...(replay && { replay }) } }))
  }
}

/** Takes those away that are over, but `keep`. */
export function tidy(keep: string | undefined): void {
  const left = [...rows.peek()].filter(([id, { ending }]) => ending === undefined || id === keep)
  if (left.length !== rows.peek().size) rows.value = new Map(left)
}

function change(id: string, next: (row: Row) => Row): void {
  const row = rows.peek().get(id)
  if (row === undefined) return
  rows.value = new Map(rows.peek()).set(id, next(row))
}

/** Requests that came since they were announced last. */
let arrived = 0
let isAnnouncing = false

function announceArrivals(): void {
  arrived++
  if (isAnnouncing) return
  isAnnouncing = true
  setTimeout(() => {
    isAnnouncing = false
    const text = `${plural(arrived, 'new request')}. ${waitingCount.peek()} waiting.`
    arrived = 0
    announce(text)
    notify(text)
  }, 1_000)
}

function take(event: LiveEvent): void {
  const { type, hitlId, data } = event
  if (type === 'reset') void readQueue()
  if (hitlId === null) return
  touched?.add(hitlId)
  const row = rows.peek().get(hitlId)
  if (row !== undefined) rows.value = new Map(rows.peek()).set(hitlId, after(row, event))
  else if (type === 'pending') {
    // The event has the line of the list.
    rows.value = new Map(rows.peek()).set(hitlId, { view: data as unknown as HitlSummary })
    announceArrivals()
  }
}

/** The row as it is after an event. The types of `data` are those of the document of the API. */
function after(row: Row, { type, data }: LiveEvent): Row {
  const { view, ending } = row
  const by = data['by'] === me.peek()?.id ? 'you' : String(data['byName'] || data['by'] || '')
  switch (type) {
    case 'approval':
      return { ...row, view: { ...view, approvedBy: data['approvedBy'] as readonly string[] } }
    case 'extended':
      return { ...row, view: { ...view, expiresAt: String(data['expiresAt']) } }
    case 'approved':
      return { view, ending: { what: 'approved', by, replay: 'inFlight' } }
    case 'completed':
    case 'failed':
    case 'unknown': {
      const responseStatus = (data['responseStatus'] ?? null) as number | null
      return { view, ending: { what: 'approved', ...ending, replay: type, responseStatus } }
    }
    case 'denied':
      return { view, ending: { what: 'denied', by } }
    case 'withdrawn':
    case 'expired':
      return { view, ending: { what: type } }
    case 'released':
      return { view: { ...view, approvedBy: [], approvalsNeeded: data['approvalsNeeded'] as number } }
    default:
      return row
  }
}

onEvent(take)

effect(() => {
  // Another person must not find them.
  if (session.value.kind === 'none') rows.value = new Map()
})
