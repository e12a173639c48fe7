/** How two requests differ: in query, header fields and body. They are the same only where the gateway's digests are equal. */

import type { Finding, Range } from '../body/findings.ts'
import { type MissingBody, type ReadBody, readBodyInTurns } from '../body/kind.ts'
import { turn } from '../body/turns.ts'
import { bodyValues, fieldValues, queryValues, type Values } from '../body/values.ts'
import type { TextKind } from '../text.ts'
import type { HitlRequest } from '../types.ts'

/** A value that is not the same in all of them. */
export interface Difference {
  readonly where: string
  /** Of each request; undefined: it is not there. */
  readonly values: readonly (string | undefined)[]
  /** Where it is in the body of the last one. */
  readonly at?: Range | undefined
}

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
  const { values, kind } = bodyValues(known)
  const differences = differencesOf(values)
  const note = differences.length === 0 ? 'They differ in spaces, in escapes or in the order of names only.' : undefined
  return { part, isSame: false, differences, kind, note }
}

function differencesOf(all: readonly Values[]): readonly Difference[] {
  const names = new Set(all.flatMap(values => [...values.keys()]))
  const [first, ...others] = all
  return [...names]
    .filter(name => others.some(values => values.get(name)?.text !== first?.get(name)?.text))
    .map(where => ({
      where,
      values: all.map(values => values.get(where)?.text),
      at: others.at(-1)?.get(where)?.at,
    }))
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
