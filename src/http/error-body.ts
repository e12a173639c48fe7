/** Bodies of refusals: a problem document, in a form whose reason the client of each provider shows. */
import { escapeDeceptive, printableJson } from '../base/deceptive.ts'
import { refusalKinds } from '../base/refusal-kinds.ts'
import type { Refusal } from '../base/refusals.ts'
import { fieldValues } from './headers.ts'
import { prefersJson } from './media-types.ts'

/**
 * The member in which clients look for the reason. `google`: `error.status` is a name and `error.code` a number. `slack`:
 * `ok` and a code in `error`. `string`: a text in `error`. `registry`: a list in `errors` (OCI Distribution 1.1). `text`: no
 * JSON at all, as git prints it. `s3` and `query`: the XML of AWS, for S3 and for services that take forms.
 */
export type ErrorFormat = 'google' | 'slack' | 'string' | 'registry' | 'text' | 's3' | 'query'

/** Body of a 401 for clients that do not ask for JSON (spec.md 5.4). */
const unauthenticatedText = 'Missing or invalid authentication'

interface BodyOptions {
  readonly requestId: string
  /** Undefined: the usual form, for SDKs that read `message`, `error.message` or `error.type`. */
  readonly format: ErrorFormat | undefined
}

/** A 401 has the text of the specification, unless the client or the called API uses JSON. */
export function refusalBody(rawHeaders: readonly string[], refusal: Refusal, { requestId, format }: BodyOptions) {
  if (format === 's3' || format === 'query') {
    return { type: 'application/xml', body: xmlOf(refusal, requestId, format) }
  }
  if (refusal.refusal === 'unauthenticated') {
    const accept = fieldValues(rawHeaders, 'accept')
    const isJson = format === 'text' ? false : prefersJson(accept, format !== undefined)
    if (!isJson) return { type: 'text/plain; charset=utf-8', body: unauthenticatedText }
  } else if (format === 'text') {
    const body = `${refusalKinds[refusal.refusal].title}: ${refusal.detail} (${requestId})\n`
    return { type: 'text/plain; charset=utf-8', body }
  }
  return {
    // Clients of registries read no other type.
    type: format === 'registry' ? 'application/json' : 'application/problem+json',
    body: printableJson(JSON.stringify(problem(refusal, requestId, format))),
  }
}

function problem(refusal: Refusal, requestId: string, format: ErrorFormat | undefined): Record<string, unknown> {
  return {
    ...problemOf(refusal),
    requestId,
    ...(refusal.errors === undefined ? {} : { errors: refusal.errors }),
    ...(format === undefined ? {} : membersOf(format, refusal)),
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
  if (format === 'registry') return { errors: [{ code: registryCode(code), message: detail }] }
  return format === 'slack' ? { ok: false, error: code } : { error: detail }
}

function xmlOf({ refusal: code, status, detail }: Refusal, requestId: string, format: 's3' | 'query'): string {
  const error = `<Code>${code}</Code><Message>${xmlText(detail)}</Message>`
  const id = `<RequestId>${requestId}</RequestId>`
  const type = `<Type>${status < 500 ? 'Sender' : 'Receiver'}</Type>`
  const whole =
    format === 's3'
      ? `<Error>${error}${id}</Error>`
      : `<ErrorResponse><Error>${type}${error}</Error>${id}</ErrorResponse>`
  return `<?xml version="1.0" encoding="UTF-8"?>\n${whole}\n`
}

const xmlText = (text: string): string => escapeDeceptive(text).replace(/[&<>]/g, char => `&#${char.charCodeAt(0)};`)

/** Longest reason phrase, characters. */
const maxPhrase = 200

/** Title and reason on the status line: for programs that show nothing else of an answer. */
export function reasonPhrase({ refusal: code, detail }: Refusal): string {
  const phrase = `${refusalKinds[code].title}: ${escapeDeceptive(detail)}`.replace(/[^ -~]/g, '?')
  return phrase.length <= maxPhrase ? phrase : `${phrase.slice(0, maxPhrase - 3)}...`
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

/** Clients know the codes of OCI Distribution 1.1, and show others as they are or as unknown. */
const registryCode = (code: string): string => (code === 'unauthenticated' ? 'UNAUTHORIZED' : code.toUpperCase())
