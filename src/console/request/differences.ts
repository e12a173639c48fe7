/** How two requests differ: in query, header fields and body. They are the same only where the gateway's digests are equal. */

import type { Finding } from '../body/findings.ts'
import { type MissingBody, type ReadBody, readBodyInTurns, readJsonOf } from '../body/kind.ts'
import { type Tree, treeDifferences } from '../body/trees.ts'
import { turn } from '../body/turns.ts'
import { type Difference, differencesOf, fieldValues, formValues, queryValues, textValues } from '../body/values.ts'
import type { TextKind } from '../text.ts'
import type { HitlRequest } from '../types.ts'

export interface Comparison {
  readonly part: 'Query' | 'Header fields' | 'Body'
  readonly isSame: boolean
  readonly differences: readonly Difference[]
  readonly kind: TextKind
  /** Note about parts that the differences do not show. */
  readonly note?: string | undefined
}

/** They differ each time. */
const passing: ReadonlySet<string> = new Set([
  'date',
  'traceparent',
  'tracestate',
  'x-request-id',
  'idempotency-key',
  'content-length',
  'user-agent',
])

export async function compareRequests(requests: readonly HitlRequest[]): Promise<readonly Comparison[]> {
  return [compareQueries(requests), compareFields(requests), await compareBodies(requests)]
}

type Part = keyof NonNullable<HitlRequest['digests']>

/** Reviewers always get the digests. */
export function areSame(part: Part, requests: readonly Pick<HitlRequest, 'digests'>[]): boolean {
  const [first, ...others] = requests.map(({ digests }) => digests?.[part])
  return first !== undefined && others.every(digest => digest === first)
}

function compareQueries(requests: readonly HitlRequest[]): Comparison {
  const same = areSame('query', requests)
  const differences = same ? [] : differencesOf(requests.map(({ url }) => queryValues(url)))
  const note = differences.length === 0 ? 'They differ in their order, or in what is redacted here.' : undefined
  return { part: 'Query', isSame: same, differences, kind: 'escaped', note: same ? undefined : note }
}

function compareFields(requests: readonly HitlRequest[]): Comparison {
  const same = areSame('fields', requests)
  const all = same ? [] : differencesOf(requests.map(({ headers }) => fieldValues(headers)))
  const differences = all.filter(({ where }) => !passing.has(where))
  const usual = all.filter(({ where }) => passing.has(where)).map(({ where }) => where)
  const hidden = new Set(requests.flatMap(({ headers }) => redactedIn(headers)))
  const texts = [
    ...(usual.length > 0 ? [`As with each request, these differ too: ${usual.join(', ')}.`] : []),
    ...(hidden.size > 0 ? [`Redacted here, and so not compared: ${[...hidden].join(', ')}.`] : []),
    ...(all.length === 0 && hidden.size === 0 ? ['They differ in their order or in the case of names.'] : []),
  ]
  return {
    part: 'Header fields',
    isSame: same,
    differences,
    kind: 'escaped',
    note: same ? undefined : texts.join(' '),
  }
}

const redactedIn = (headers: HitlRequest['headers']): readonly string[] =>
  Object.keys(headers).filter(name => headers[name]?.includes('[REDACTED]'))

async function compareBodies(requests: readonly HitlRequest[]): Promise<Comparison> {
  const part = 'Body'
  if (areSame('body', requests)) return { part, isSame: true, differences: [], kind: 'value' }
  const bodies: (ReadBody | MissingBody)[] = []
  for (const request of requests) {
    bodies.push(await readBodyInTurns(request))
    await turn()
  }
  const known = bodies.filter(body => body !== 'sealed' && body !== 'deleted')
  if (known.length < bodies.length) {
    return { part, isSame: false, differences: [], kind: 'value', note: 'One of the bodies is not kept.' }
  }
  const { differences, kind } = await bodyDifferences(known)
  return { part, isSame: false, differences, kind, note: bodyNote(differences.length) }
}

/** Differences of bodies that are listed and marked. */
const mostDifferences = 10_000

function bodyNote(count: number): string | undefined {
  if (count === 0) return 'They differ in spaces, in escapes or in the order of names only.'
  return count < mostDifferences
    ? undefined
    : `The first ${mostDifferences.toLocaleString('en')} values that differ are listed and marked.`
}

/** Values of JSON are compared by their names. Of bodies that are not of one kind, the texts are compared. */
async function bodyDifferences(
  bodies: readonly (ReadBody | 'none')[],
): Promise<Pick<Comparison, 'differences' | 'kind'>> {
  const read = bodies.filter(body => body !== 'none')
  if (read.length === bodies.length) {
    const trees = await treesOf(read)
    if (trees !== undefined) return { differences: await treeDifferences(trees, mostDifferences), kind: 'value' }
    const forms = read.flatMap(({ shape, text }) => (shape.kind === 'form' ? [formValues(shape.pairs, text)] : []))
    if (forms.length === read.length) return { differences: differencesOf(forms), kind: 'bytes' }
  }
  const texts = bodies.map(body => (body === 'none' ? '' : body.text))
  return { differences: differencesOf(textValues(texts)), kind: 'bytes' }
}

/** Undefined when one of the bodies is no JSON. */
async function treesOf(bodies: readonly ReadBody[]): Promise<readonly Tree[] | undefined> {
  const trees: Tree[] = []
  for (const body of bodies) {
    const { shape, text } = body
    if (!['json', 'unread', 'tool', 'messages', 'graphql'].includes(shape.kind)) return undefined
    const value = shape.kind === 'json' ? shape.value : await readJsonOf(body)
    if (typeof value === 'string') return undefined
    trees.push({ text, value })
  }
  return trees
}

/** Longest earlier value that is shown beside a changed one. */
const longestBefore = 80

/** The values of the body that are not those of the first one, in their order. */
export function changesIn(comparisons: readonly Comparison[]): readonly Finding[] {
  return comparisons
    .flatMap(({ differences }) => differences)
    .flatMap(({ at, values: [before] }) =>
      at === undefined ? [] : { from: at.from, to: at.to, change: wasText(before) },
    )
    .sort((left, right) => left.from - right.from)
}

function wasText(before: string | undefined): string {
  if (before === undefined) return 'new'
  return `was ${before.length > longestBefore ? `${before.slice(0, longestBefore)}…` : before}`
}
