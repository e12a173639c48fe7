/** How two requests differ: in query, header fields and body. They are the same only where the gateway's digests are equal. */
import { readBody } from '../body/kind.ts'
import { bodyValues, fieldValues, queryValues, type Values } from '../body/values.ts'
import type { TextKind } from '../text.ts'
import type { HitlRequest } from '../types.ts'

export interface Change {
  readonly where: string
  /** Undefined: it was not there. */
  readonly before: string | undefined
  readonly after: string | undefined
}

export interface Comparison {
  readonly part: 'Query' | 'Header fields' | 'Body'
  readonly isSame: boolean
  readonly changes: readonly Change[]
  readonly kind: TextKind
  /** What the changes do not tell. */
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

export function compareRequests(before: HitlRequest, after: HitlRequest): readonly Comparison[] {
  return [compareQueries(before, after), compareFields(before, after), compareBodies(before, after)]
}

type Part = keyof NonNullable<HitlRequest['digests']>

/** Undefined for requests that were held by an earlier version. */
function isSame(part: Part, { digests: before }: HitlRequest, { digests: after }: HitlRequest): boolean | undefined {
  return before && after && before[part] === after[part]
}

const unknown = 'Whether they are the same is not known: one was held by an earlier version.'

function compareQueries(before: HitlRequest, after: HitlRequest): Comparison {
  const same = isSame('query', before, after)
  const changes = same === true ? [] : changesOf(queryValues(before.url), queryValues(after.url))
  const differs = changes.length === 0 ? 'They differ in their order, or in what is redacted here.' : undefined
  return { part: 'Query', isSame: same === true, changes, kind: 'told', note: noteOf(same, differs) }
}

function compareFields(before: HitlRequest, after: HitlRequest): Comparison {
  const same = isSame('fields', before, after)
  const all = same === true ? [] : changesOf(fieldValues(before.headers), fieldValues(after.headers))
  const changes = all.filter(({ where }) => !passing.has(where))
  const usual = all.filter(({ where }) => passing.has(where)).map(({ where }) => where)
  const hidden = Object.keys(after.headers).filter(name => /\[REDACTED\]/.test(after.headers[name] ?? ''))
  const texts = [
    ...(usual.length > 0 ? [`As with each request, these differ too: ${usual.join(', ')}.`] : []),
    ...(hidden.length > 0 ? [`Redacted here, and so not compared: ${hidden.join(', ')}.`] : []),
    ...(all.length === 0 && hidden.length === 0 ? ['They differ in their order or in the case of names.'] : []),
  ]
  return { part: 'Header fields', isSame: same === true, changes, kind: 'told', note: noteOf(same, texts.join(' ')) }
}

function compareBodies(before: HitlRequest, after: HitlRequest): Comparison {
  const same = isSame('body', before, after)
  const [old, now] = same === true ? [] : [readBody(before), readBody(after)]
  const known = (body: typeof old) => body !== 'sealed' && body !== 'deleted'
  if (!known(old) || !known(now)) {
    return { part: 'Body', isSame: false, changes: [], kind: 'value', note: 'One of the bodies is not kept.' }
  }
  const { values, kind } = bodyValues(old ?? 'none', now ?? 'none')
  const changes = changesOf(...values)
  const differs = changes.length === 0 ? 'They differ in spaces, in escapes or in the order of names only.' : undefined
  return { part: 'Body', isSame: same === true, changes, kind, note: noteOf(same, differs) }
}

function noteOf(same: boolean | undefined, differs: string | undefined): string | undefined {
  if (same === true) return undefined
  return same === undefined ? unknown : differs
}

function changesOf(before: Values, after: Values): readonly Change[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names]
    .filter(name => before.get(name) !== after.get(name))
    .map(where => ({ where, before: before.get(where), after: after.get(where) }))
}
