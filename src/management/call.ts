import type { IncomingMessage } from 'node:http'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { AgentRecord } from '../storage/store.ts'

/** The caller: an active agent that passed the guard. */
export interface Caller {
  /** The current record in the registry; called with a key, without the roles that it may not use. */
  readonly agent: AgentRecord
  /** True when no role lets the caller in, so that it sees nothing but its own. */
  readonly selfOnly: boolean
  /** The id of the key that it called with; undefined with a token. */
  readonly keyId: string | undefined
  /** The keys of tokens when it called: with others its token is void. */
  readonly keys: object
  /** When the token runs out, milliseconds since the epoch. */
  readonly until: number
  /** Until when the session of the token can be renewed; undefined when it is no token of the console. */
  readonly sessionEndsAt: number | undefined
}

/** One call of a public operation. Everything in it was checked against openapi.json. */
export interface OpenCall {
  readonly req: IncomingMessage
  readonly requestId: string
  /** Aborts when the connection closes, or the caller loses its right to the call: nothing more may be sent. */
  readonly left: AbortSignal
  /** The id or name in the path, percent-decoded; empty when the path has none. */
  readonly named: string
  /** Declared query parameters, with their defaults. */
  readonly query: Readonly<Record<string, string | number>>
  /** The JSON body; undefined when an optional body is absent. */
  readonly body: unknown
}

/** One call of an operation that needs a role. */
export interface ManagementCall extends OpenCall {
  readonly caller: Caller
  /** Why the caller may not go on, after a wait; undefined while what let it in holds. */
  readonly problemNow: () => Refusal | undefined
}

/** The body of a call. The caller names the type that openapi.json describes, against which the body was checked. */
export const bodyOf = <T>({ body }: Pick<OpenCall, 'body'>): T => body as T

/** The query of an operation whose parameters are all text, as openapi.json says. */
export const textsOf = ({ query }: OpenCall) => query as Readonly<Record<string, string | undefined>>

/** What the caller saw (`If-Match`, RFC 9110 section 13.1.1); undefined: anything. A weak tag never matches. */
export function ifMatch({ req }: Pick<OpenCall, 'req'>): readonly string[] | undefined {
  const { 'if-match': field } = req.headers
  if (field === undefined || field.trim() === '*') return undefined
  return field.split(',').flatMap(tag => /^\s*"([\x21\x23-\x7e]*)"\s*$/.exec(tag)?.[1] ?? [])
}

type HandlerResult = Reply | Refusal

/** Handlers by operationId. They answer with a value; a rejection is a fault of the gateway. */
export interface Handlers {
  /** Operations with an empty `x-roles`. */
  readonly open: Readonly<Record<string, (call: OpenCall) => HandlerResult | Promise<HandlerResult>>>
  /** Operations that need one of their `x-roles`. */
  readonly guarded: Readonly<Record<string, (call: ManagementCall) => HandlerResult | Promise<HandlerResult>>>
}

/** 200 without a body (spec 4.2, 4.5). */
export const done: Reply = { status: 200 }

export const doneUnlessRefused = (result: object): HandlerResult => (isRefusal(result) ? result : done)

/** What was found or made, unless it was refused. */
export function replyOf<T extends object>(
  made: T | Refusal | undefined,
  show: (made: T) => unknown = shown => shown,
  status = 200,
): HandlerResult {
  if (made === undefined) return refuse('not_found')
  return isRefusal(made) ? made : jsonReply(status, show(made))
}

export const timeText = (at: number): string => new Date(at).toISOString()

/** null: never, or not yet. */
export const timeOrNull = (at: number | null): string | null => (at === null ? null : timeText(at))
