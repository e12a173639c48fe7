/** How two requests of one group differ: in query, header fields and body. */
import type { HitlRequest } from '../types.ts'
import { parse } from './body-kind.ts'
import { placeOf } from './url.ts'

export interface Change {
  readonly where: string
  /** Undefined: it was not there. */
  readonly before: string | undefined
  readonly after: string | undefined
}

/** Differences that are shown, and values of a body that are compared. */
const most = 100
const mostValues = 5_000
/** They differ each time. */
const passing = new Set([
  'date',
  'traceparent',
  'tracestate',
  'x-request-id',
  'idempotency-key',
  'content-length',
  'user-agent',
])

export function differences(before: HitlRequest, after: HitlRequest): readonly Change[] {
  return [
    ...compare(queryOf(before), queryOf(after)),
    ...compare(headersOf(before), headersOf(after)),
    ...compare(bodyOf(before), bodyOf(after)),
  ].slice(0, most)
}

type Values = ReadonlyMap<string, string>

function compare(before: Values, after: Values): readonly Change[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names]
    .filter(name => before.get(name) !== after.get(name))
    .map(where => ({ where, before: before.get(where), after: after.get(where) }))
}

const queryOf = ({ url }: HitlRequest): Values =>
  new Map(placeOf(url).query.map(([name, value]) => [`query ${name}`, value]))

const headersOf = ({ headers }: HitlRequest): Values =>
  new Map(
    Object.entries(headers)
      .filter(([name]) => !passing.has(name.toLowerCase()))
      .map(([name, value]) => [`field ${name}`, value]),
  )

function bodyOf({ body, bodyEncoding }: HitlRequest): Values {
  if (bodyEncoding === 'utf8') {
    const value = parse(body)
    const values = new Map<string, string>()
    if (value !== undefined) {
      flatten(value, 'body', values)
      return values
    }
  }
  return new Map([['body', body]])
}

function flatten(value: unknown, where: string, into: Map<string, string>): void {
  if (into.size >= mostValues) return
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    into.set(where, typeof value === 'string' ? value : JSON.stringify(value))
    return
  }
  for (const [name, inner] of Object.entries(value)) {
    flatten(inner, Array.isArray(value) ? `${where}[${name}]` : `${where}.${name}`, into)
  }
}
