/** What is open, and what is chosen for a verdict on several. */
import { computed, signal } from '@preact/signals'
import { currentPath, search, setSearch } from '../router.ts'
import type { HitlSummary } from '../types.ts'
import { shown } from './arrangement.ts'
import { type Row, rows, tidy } from './store.ts'

export const openId = computed(() => search.value.get('id') ?? undefined)
export const chosen = signal<ReadonlySet<string>>(new Set())

/** Whether the person has closed the request that was open: then none opens by itself. */
let isClosed = false

export function open(id: string | undefined): void {
  isClosed = id === undefined
  setSearch({ id })
}

export const chosenRows = computed(() => [...chosen.value].flatMap(id => rows.value.get(id) ?? []).filter(isOpen))

const isOpen = ({ ending }: Row): boolean => ending === undefined

/** The row from which a range is chosen. */
let anchor: string | undefined

/** @param isRange whether all rows from the one before to this one become as this one does */
export function toggle(id: string, isRange = false): void {
  const next = new Set(chosen.peek())
  const isChosen = !next.has(id)
  for (const one of isRange ? between(anchor, id) : [id]) {
    if (isChosen) next.add(one)
    else next.delete(one)
  }
  anchor = id
  chosen.value = next
}

function between(from: string | undefined, to: string): readonly string[] {
  const list = shown.peek()
  const ends = [from, to].map(id => list.findIndex(({ view }) => view.id === id))
  if (ends.includes(-1)) return [to]
  return list
    .slice(Math.min(...ends), Math.max(...ends) + 1)
    .filter(isOpen)
    .map(({ view }) => view.id)
}

export function chooseAll(list: readonly Row[]): void {
  chosen.value = new Set([...chosen.peek(), ...list.filter(isOpen).map(({ view }) => view.id)])
}

export function unchoose(views: readonly HitlSummary[]): void {
  const next = new Set(chosen.peek())
  for (const { id } of views) next.delete(id)
  chosen.value = next
}

export function clearChoice(): void {
  chosen.value = new Set()
}

/** Requests are alike when a verdict on one may be the verdict on all: POST /hitl/verdicts approves within a group only. */
export function groupOf({ agentId, policyName, rule, method, url }: HitlSummary): string {
  const end = url.search(/[?#]/)
  return JSON.stringify([agentId, policyName, rule, method, end < 0 ? url : url.slice(0, end)])
}

export const alike = (view: HitlSummary): readonly Row[] =>
  [...rows.value.values()].filter(row => isOpen(row) && groupOf(row.view) === groupOf(view))

/** The next row in a direction that still waits, or any when none does. */
export function step(by: 1 | -1): void {
  const list = shown.peek()
  const at = list.findIndex(({ view }) => view.id === openId.peek())
  const next = list[at < 0 ? (by === 1 ? 0 : list.length - 1) : at + by]
  if (next !== undefined) open(next.view.id)
}

const isWide = matchMedia('(min-width: 721px)')

/** Where list and request are side by side, the first one is open. */
export function openFirst(): void {
  if (currentPath() !== '/') return
  const first = shown.peek().find(isOpen)
  if (!isClosed && openId.peek() === undefined && isWide.matches && first !== undefined) open(first.view.id)
}

/** Requests whose page takes the focus when it is drawn. */
let focusOn: string | undefined

/** Opens the next one that waits after a verdict, or the last before it. When none does, the decided one stays. */
export function openNext(after: string): void {
  const list = shown.peek()
  const at = list.findIndex(({ view }) => view.id === after)
  const next = list.slice(at + 1).find(isOpen) ?? list.slice(0, Math.max(0, at)).findLast(isOpen)
  focusOn = next?.view.id ?? after
  if (next !== undefined) open(next.view.id)
}

/** What is over goes away, and where the open one is, the next one opens: its outcome was shown. */
export function goOn(): void {
  const id = openId.peek()
  if (id !== undefined && rows.peek().get(id)?.ending !== undefined) openNext(id)
  tidy(openId.peek())
}

/** Whether the page of a request takes the focus: the dialog that had it is gone. */
export function takesFocus(id: string): boolean {
  const isIt = focusOn === id
  if (isIt) focusOn = undefined
  return isIt
}
