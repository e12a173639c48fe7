/** Which rows are shown, in which order and in which groups. The query of the route has all of it, so that a link does. */
import { computed, effect, signal } from '@preact/signals'
import { placeOf } from '../body/url.ts'
import { search, setSearch } from '../router.ts'
import type { HitlSummary } from '../types.ts'
import { loading, type Row, rows } from './store.ts'
import { riskOf } from './what.tsx'

export const sorts = [
  ['age', 'Oldest first'],
  ['left', 'Least time left'],
  ['risk', 'Highest risk'],
] as const

export const groupings = [
  ['none', 'No groups'],
  ['rule', 'By rule'],
  ['agent', 'By agent'],
  ['host', 'By host'],
  ['tool', 'By tool'],
] as const

type Sort = (typeof sorts)[number][0]
export type Grouping = Exclude<(typeof groupings)[number][0], 'none'>

/** Rows under one heading. */
export interface Section {
  /** Absent: there are no groups. `arrived`: what came since the rows were put in order. */
  readonly by?: Grouping | 'arrived'
  readonly name: string
  readonly rows: readonly Row[]
}

export const filter = computed(() => search.value.get('q') ?? '')
export const sort = computed<Sort>(() => sorts.find(([name]) => name === search.value.get('sort'))?.[0] ?? 'age')
export const grouping = computed<Grouping | undefined>(() => {
  const found = groupings.find(([name]) => name === search.value.get('group'))?.[0]
  return found === 'none' ? undefined : found
})

/** The latest request that the order counts: later ones follow at the end, so that no row moves under the pointer. */
const arrangedUpTo = signal('')

/** Puts everything in order that waits now. */
export function orderAll(): void {
  let latest = ''
  for (const { view } of rows.peek().values()) if (view.timestamp > latest) latest = view.timestamp
  arrangedUpTo.value = latest
}

effect(() => {
  // A link may ask for another order, too.
  void [sort.value, grouping.value]
  if (loading.value === 'no') orderAll()
})

/** Changes filter, order or groups. */
export function arrange(values: Readonly<{ q?: string; sort?: string; group?: string }> = {}): void {
  orderAll()
  setSearch(values)
}

const facets: Readonly<Record<Grouping | 'owner', (view: HitlSummary) => string>> = {
  rule: ({ rule }) => rule ?? 'default of the policy',
  agent: ({ agentName, agentId }) => agentName ?? agentId,
  owner: ({ ownerId }) => ownerId ?? '',
  host: ({ host, url }) => host ?? placeOf(url).host,
  tool: ({ operation, method }) => operation ?? method,
}

/** A word of the filter: `agent:"support bot"` is that agent alone, `agent:sup` each whose name has it, `sup` anything. */
const word = /(?:(rule|agent|owner|host|tool):)?(?:"([^"]*)"?|([^\s"]+))/g

/** The word that lets one group through. */
export const wordFor = (by: Grouping, name: string): string => `${by}:"${name.replaceAll('"', '')}"`

type Test = (view: HitlSummary) => boolean

function testsOf(text: string): readonly Test[] {
  return [...text.toLowerCase().matchAll(word)].map(([, facet, whole, part = '']): Test => {
    if (facet === undefined) return view => textOf(view).includes(whole ?? part)
    const read = facets[facet as Grouping]
    return view => {
      const value = read(view).toLowerCase()
      return whole === undefined ? value.includes(part) : value.replaceAll('"', '') === whole
    }
  })
}

const textOf = ({ title, operation, method, url, agentName, ownerId, rule, reason }: HitlSummary): string =>
  [title, operation, method, url, agentName, ownerId, rule, reason].join(' ').toLowerCase()

const orders: Readonly<Record<Exclude<Sort, 'age'>, (left: HitlSummary, right: HitlSummary) => number>> = {
  left: (left, right) => (left.expiresAt < right.expiresAt ? -1 : left.expiresAt > right.expiresAt ? 1 : 0),
  risk: (left, right) => (riskOf(right) ?? 0) - (riskOf(left) ?? 0),
}

/** Rows come in the order of their age. */
function sorted(list: readonly Row[], by: Sort): readonly Row[] {
  return by === 'age' ? list : list.toSorted((left, right) => orders[by](left.view, right.view))
}

/** The rows that the filter lets through. All words must hold. */
export const sections = computed<readonly Section[]>(() => {
  const tests = testsOf(filter.value)
  const all = [...rows.value.values()].filter(({ view }) => tests.every(test => test(view)))
  const by = grouping.value
  if (by === undefined && sort.value === 'age') return [{ name: '', rows: all }]
  const upTo = arrangedUpTo.value
  const arrived = all.filter(({ view }) => view.timestamp > upTo)
  const arranged = sorted(arrived.length === 0 ? all : all.filter(({ view }) => view.timestamp <= upTo), sort.value)
  return [
    ...(by === undefined ? [{ name: '', rows: arranged }] : grouped(arranged, by)),
    ...(arrived.length > 0 ? [{ by: 'arrived' as const, name: 'Arrived since', rows: arrived }] : []),
  ]
})

/** The group with the first row is first. */
function grouped(list: readonly Row[], by: Grouping): readonly Section[] {
  const groups = Map.groupBy(list, ({ view }) => facets[by](view))
  return [...groups].map(([name, rows]) => ({ by, name, rows }))
}

export const shown = computed<readonly Row[]>(() => sections.value.flatMap(section => section.rows))
