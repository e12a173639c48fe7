/** Bodies of refusals: a problem document, in a form whose reason the client of each provider shows. */
import { printableJson } from '../base/deceptive.ts'
import { type Refusal, refusalKinds } from '../base/refusals.ts'
import { fieldValues } from './headers.ts'
import { prefersJson } from './media-types.ts'

/**
 * The member in which clients look for the reason. `google`: `error.status` is a name and `error.code` a number. `slack`:
 * `ok` and a code in `error`. `string`: a text in `error`. `text`: no JSON at all, as git prints it.
 */
export type ErrorFormat = 'google' | 'slack' | 'string' | 'text'

/** Body of a 401 for clients that do not ask for JSON (spec.md 5.4). */
const unauthenticatedText = 'Missing or invalid authentication'

interface BodyOptions {
  readonly requestId: string
  /** Undefined: the usual form, for SDKs that read `message`, `error.message` or `error.type`. */
  readonly format: ErrorFormat | undefined
}

/** A 401 has the text of the specification, unless the client or the called API uses JSON. */
export function refusalBody(rawHeaders: readonly string[], refusal: Refusal, { requestId, format }: BodyOptions) {
  if (refusal.refusal === 'unauthenticated') {
    const accept = fieldValues(rawHeaders, 'accept')
    const isJson = format === 'text' ? false : prefersJson(accept, format !== undefined)
    if (!isJson) return { type: 'text/plain; charset=utf-8', body: unauthenticatedText }
  } else if (format === 'text') {
    const body = `${refusalKinds[refusal.refusal].title}: ${refusal.detail} (${requestId})\n`
    return { type: 'text/plain; charset=utf-8', body }
  }
  return {
    type: 'application/problem+json',
    body: printableJson(JSON.stringify(problem(refusal, requestId, format))),
  }
}

function problem(refusal: Refusal, requestId: string, format: ErrorFormat | undefined): Record<string, unknown> {
  return {
    ...problemOf(refusal),
    ...(format === undefined ? {} : membersOf(format, refusal)),
    requestId,
    ...(refusal.errors === undefined ? {} : { errors: refusal.errors }),
    ...refusal.members,
  }
}

/** The problem document of a refusal (RFC 9457). SDKs show the reason from `message`, `error` or the type in `error`. */
export function problemOf({ refusal: code, status, detail }: Refusal): Record<string, unknown> {
  const { title } = refusalKinds[code]
  const error = { type: errorTypeOf(status), code, message: detail }
  return { type: 'error', title, status, code, detail, message: detail, error }
}

function membersOf(format: ErrorFormat, { refusal: code, status, detail }: Refusal): Record<string, unknown> {
  if (format === 'google') {
    return { error: { code: status, message: detail, status: googleStatus.get(status) ?? 'UNKNOWN', details: [] } }
  }
  return format === 'slack' ? { ok: false, error: code } : { error: detail }
}

/** Error types of the SDKs of model providers, by status. */
function errorTypeOf(status: number): string {
  if (status === 401 || status === 407) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'api_error'
}

/** Names of google.rpc.Code. */
const googleStatus: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
])
