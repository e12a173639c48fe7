/** Calls of the gateway's API. Answers are values; only a bug throws. */
import type { Problem } from './types.ts'

export interface Failure {
  /** 0: no answer came. */
  readonly status: number
  /** Code of the refusal; `offline` when no answer came. */
  readonly code: string
  readonly detail: string
  readonly problem: Partial<Problem>
}

export type Result<T> =
  | { readonly ok: true; readonly status: number; readonly data: T }
  | { readonly ok: false; readonly failure: Failure }

export interface CallOptions {
  readonly body?: unknown
  /** Digest of the request, or version of the policy, that the person read. */
  readonly digest?: string
  /** A repeat with the same one creates nothing more. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
  readonly lastEventId?: string
  /** Absent: that of the session. */
  readonly token?: string | null
}

/** What the session gives to calls, and learns from them. */
interface Hooks {
  readonly token: () => string | undefined
  /** A call with the token of the session was answered with 401. */
  readonly onRejected: (token: string) => void
}

let hooks: Hooks = { token: () => undefined, onRejected: () => {} }

export function connectSession(given: Hooks): void {
  hooks = given
}

/** The gateway may be below a prefix: the console is at `<prefix>/console/`. */
const urlOf = (path: string): string => new URL(`..${path}`, document.baseURI).href

function headersFor(options: CallOptions): { readonly headers: Headers; readonly token: string | undefined } {
  const token = options.token === undefined ? hooks.token() : (options.token ?? undefined)
  const headers = new Headers()
  if (token !== undefined) headers.set('Authorization', `Bearer ${token}`)
  if (options.body !== undefined) headers.set('Content-Type', 'application/json')
  if (options.digest !== undefined) headers.set('If-Match', `"${options.digest}"`)
  if (options.idempotencyKey !== undefined) headers.set('Idempotency-Key', options.idempotencyKey)
  if (options.lastEventId !== undefined) headers.set('Last-Event-ID', options.lastEventId)
  return { headers, token }
}

/** The answer itself, or undefined when none came. */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response | undefined> {
  const { headers, token } = headersFor(options)
  const { body, signal } = options
  try {
    const answer = await fetch(urlOf(path), {
      method,
      headers,
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (answer.status === 401 && token !== undefined && options.token === undefined) hooks.onRejected(token)
    return answer
  } catch {
    return undefined
  }
}

/** One call whose answer is JSON, or nothing. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<Result<T>> {
  const answer = await send(method, path, options)
  if (answer === undefined) return { ok: false, failure: offline }
  if (!answer.ok) return { ok: false, failure: await failureOf(answer) }
  const text = await answer.text().catch(() => undefined)
  if (text === undefined) return { ok: false, failure: offline }
  // The document of the API says which type it is.
  return { ok: true, status: answer.status, data: (text === '' ? undefined : JSON.parse(text)) as T }
}

/** One call that changes something; undefined when it did. */
export async function change(method: string, path: string, options: CallOptions = {}): Promise<Failure | undefined> {
  const answer = await call(method, path, options)
  return answer.ok ? undefined : answer.failure
}

export const offline: Failure = {
  status: 0,
  code: 'offline',
  detail: 'The gateway does not answer. Check the network; nothing is lost here.',
  problem: {},
}

export async function failureOf(answer: Response): Promise<Failure> {
  const { status } = answer
  const text = await answer.text().catch(() => '')
  const problem = parse(text)
  const code = problem.code ?? answer.headers.get('Gateway-Error') ?? String(status)
  return { status, code, detail: problem.detail ?? (text.slice(0, 200) || `The gateway answered ${status}.`), problem }
}

function parse(text: string): Partial<Problem> {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

export function query(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== '') given.set(name, String(value))
  }
  const text = given.toString()
  return text === '' ? '' : `?${text}`
}
