/** Calls of Slack's Web API, past the egress guard. */
import { parseJson } from '../../base/json.ts'
import { isObject } from '../../base/records.ts'
import { fieldValues } from '../../http/headers.ts'
import type { WebhookMessage } from '../messages/message.ts'
import type { NotAccepted } from '../receiver.ts'

/** Posts once, past the egress guard. The body of an answer is there when its status is 200. */
export type AskSlack = (
  message: WebhookMessage,
  signal: AbortSignal,
) => Promise<{ readonly status: number; readonly fields: readonly string[]; readonly body: Uint8Array }>

export interface SlackAnswer {
  /** The answer has the error of a call that did nothing. */
  readonly refused: NotAccepted | undefined
  /** Code of Slack, such as `channel_not_found`. */
  readonly error: string | undefined
  readonly body: Readonly<Record<string, unknown>>
}

/** Rejects when Slack was not reached, or at the abort. */
export type SlackCall = (
  method: string,
  args: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<SlackAnswer>

export interface SlackAccess {
  readonly apiUrl: string
  readonly token: string
  readonly ask: AskSlack
}

const passing = ['ratelimited', 'internal_error', 'fatal_error', 'service_unavailable', 'request_timeout']
const neverAborts = new AbortController().signal

/** Arguments are a form, which every method takes; those that are no text are JSON in it. */
export function createSlackCall({ apiUrl, token, ask }: SlackAccess): SlackCall {
  const headers = ['Content-Type', 'application/x-www-form-urlencoded', 'Authorization', `Bearer ${token}`]
  return async (method, args, signal = neverAborts) => {
    const texts = Object.entries(args).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    const body = new URLSearchParams(texts).toString()
    const url = `${apiUrl}/${method}`
    const answer = await ask({ url, headers: [...headers, 'Accept-Encoding', 'identity'], body }, signal)
    if (answer.status !== 200) {
      const { status, fields } = answer
      const seconds = Number(fieldValues(fields, 'retry-after')[0])
      const isPassing = status === 429 || status >= 500
      const waitMs = seconds > 0 ? seconds * 1_000 : undefined
      return { refused: { failure: `${method}: answered ${status}`, isPassing, waitMs }, error: undefined, body: {} }
    }
    return answerOf(method, answer.body)
  }
}

function answerOf(method: string, bytes: Uint8Array): SlackAnswer {
  const body = parse(Buffer.from(bytes).toString())
  if (body['ok'] === true) return { refused: undefined, error: undefined, body }
  const error = typeof body['error'] === 'string' ? body['error'].slice(0, 64) : 'no answer that can be read'
  return { refused: { failure: `${method}: ${error}`, isPassing: passing.includes(error) }, error, body }
}

/** The members of a JSON object; none of any other text. */
export function parse(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text)
  return isObject(value) ? value : {}
}

/** The text at a path of keys; empty when there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  let at = value
  for (const key of path) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  return typeof at === 'string' ? at : ''
}
