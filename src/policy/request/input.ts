/**
 * Input of a decision: subject (agent), action (method), resource (target, headers, body) and context (time, addresses,
 * activity). Built by the enforcement point, read by the engine, never changed.
 */
import type { Activity } from '../../base/activity.ts'
import type { McpHeads } from './mcp-heads.ts'

/** The address to which a request would be sent. Known after DNS, or at once for literal addresses. */
export interface Destination {
  readonly ip: string
  readonly class: 'public' | 'private' | 'loopback' | 'linkLocal' | 'metadata' | 'reserved'
}

export interface AgentFacts {
  readonly id: string
  readonly name: string
  readonly ownerId: string
  readonly status: string
  readonly policyName: string | null
  readonly createdAt: number
  readonly tags: Readonly<Record<string, string>>
  /** Claims of the verified token; undefined when they are no longer known. */
  readonly claims: Readonly<Record<string, unknown>> | undefined
  /** Live value in [0, 1]. */
  readonly trustScore: number
}

/** What is spent of budgets, what calls under way have reserved included. Undefined: not known. */
export interface SpendFacts {
  /** Money and tokens of the agent alone, in the day or month of UTC. */
  readonly spendToday: number | undefined
  readonly spendThisMonth: number | undefined
  readonly tokensToday: number | undefined
  readonly budgets: ReadonlyMap<string, BudgetFacts>
}

export interface BudgetFacts {
  /** Share of the limit. */
  readonly used: number | undefined
  /** Amount in the unit of the budget. */
  readonly remaining: number | undefined
}

/** The head of the request. Strings are exactly those that will be sent. */
export interface RequestHead {
  /** Upper case. */
  readonly method: string
  readonly url: string
  /** `https://api.example.com`, with the port unless it is the usual one of the scheme. */
  readonly origin: string
  readonly scheme: string
  /** Lower case, without port; IPv6 in brackets. */
  readonly host: string
  readonly port: number
  readonly path: string
  /** Every way in which servers read the path, the literal one first; undefined when there is only one. */
  readonly readings: readonly string[] | undefined
  readonly rawPath: string
  /** Without the question mark; empty when there is none. */
  readonly queryString: string
  /** Header fields as received: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  /** Body bytes announced; 0 when there is no body; -1 when the length is not announced. */
  readonly contentLength: number
  /** What the head of an MCP request says about its body; absent when it says nothing. */
  readonly mcp?: McpHeads | undefined
  /** Undefined when it is no longer known. */
  readonly clientIp: string | undefined
  readonly destination: Destination | undefined
  readonly agent: AgentFacts
  readonly activity: Activity | undefined
  readonly spend?: SpendFacts | undefined
  /** The most that it can cost with this body; `none`: it is no call of a model; undefined: not known. */
  maxCost?(body: Uint8Array): number | 'none' | undefined
  /** Milliseconds since the epoch, read once per request. */
  readonly now: number
}

/** The body bytes as far as they were held. */
export interface RequestBody {
  readonly bytes: Uint8Array
  /** False when the body is longer than what was held. */
  readonly complete: boolean
}
