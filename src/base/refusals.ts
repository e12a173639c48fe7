import type { FailureKind } from './failure-kinds.ts'
import { type RefusalCode, refusalKinds } from './refusal-kinds.ts'

/** For clients that forgot `/proxy/`, or that have the gateway as their HTTP_PROXY. */
export const howToCall =
  'Upstreams are called as /proxy/<URL>, such as /proxy/https://example.com/path; HTTP_PROXY needs the port of ForwardProxy.'

/** One mistake in what the caller sent: `field` is a JSON path (`rules[0].effect`) or a parameter name. */
export interface FieldError {
  readonly field: string
  readonly message: string
  readonly code?: string
}

export interface RefusalExtras {
  /** Header fields of the answer, flat: name, value, name, value. */
  readonly headers?: readonly string[]
  /** Every mistake found, for `errors` in the problem document. */
  readonly errors?: readonly FieldError[]
  /** Why, for the log alone: it may have addresses and settings that the caller must not learn. */
  readonly cause?: string | undefined
  /** Kind of an upstream failure, for the log alone. */
  readonly failure?: FailureKind
  /** Further members of the problem document (RFC 9457 section 3.2). */
  readonly members?: Readonly<Record<string, unknown>>
}

export interface Refusal extends RefusalExtras {
  readonly refusal: RefusalCode
  readonly status: number
  readonly detail: string
}

/** A refusal with its status, and `Retry-After` unless it has one; `detail` replaces the table's text and must be safe to show to the caller. */
export function refuse(code: RefusalCode, detail?: string, extras?: RefusalExtras): Refusal {
  const { status, detail: usual, retryAfter } = refusalKinds[code]
  const refusal = { refusal: code, status, detail: detail ?? usual, ...extras }
  const headers = extras?.headers ?? []
  if (retryAfter === undefined || headers.includes('Retry-After')) return refusal
  return { ...refusal, headers: ['Retry-After', String(retryAfter), ...headers] }
}

/** The body is as openapi.json says, but this field of it cannot be as it is. */
export const refuseField = (field: string, message: string): Refusal =>
  refuse('invalid_body', undefined, { errors: [{ field, message }] })

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refusal' in value
}

/** A failure at the start. Its message alone is printed, without a stack: what is wrong, and what to do next. */
export class StartupError extends Error {
  override readonly name = 'StartupError'
}
