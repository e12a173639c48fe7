/** Calls as rules see them; requests that arrive, as such calls. */

import { trustScore } from '../../agents/agent.ts'
import type { Activity } from '../../base/activity.ts'
import type { RefusalCode } from '../../base/refusal-kinds.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { fieldValues, withoutNominated, withoutTokens } from '../../http/headers.ts'
import { decideHead } from '../../policy/evaluation/decide.ts'
import type { DecisionSource } from '../../policy/evaluation/decision.ts'
import { isMcpEndpoint } from '../../policy/evaluation/mcp-endpoint.ts'
import { destinationOf } from '../../policy/request/facts.ts'
import type { AgentFacts, Destination, RequestHead, SpendFacts } from '../../policy/request/input.ts'
import { type McpHeads, readMcpHeads } from '../../policy/request/mcp-heads.ts'
import { maxCost } from '../budgets/bill.ts'
import type { Admitted, Decided } from '../exchange.ts'
import type { OutboundParts } from '../parts.ts'
import { holds } from '../rights.ts'
import { type HeldBody, holdBody } from '../steps/hold-body.ts'
import { closeCircuit, passCircuit } from '../steps/origin.ts'
import type { Call, CallKind } from './call.ts'

/** A call as rules see it. Costly views are made when a rule asks for them. */
export abstract class RequestView<C extends Call> implements RequestHead {
  readonly method: string
  readonly url: string
  readonly origin: string
  readonly scheme: string
  readonly host: string
  readonly port: number
  readonly path: string
  readonly readings: readonly string[] | undefined
  readonly rawPath: string
  readonly queryString: string
  readonly contentLength: number
  readonly now: number
  protected readonly call: C
  protected readonly parts: OutboundParts

  /** @param contentLength bytes of the body; -1 when that is not known */
  constructor(call: C, contentLength: number, parts: OutboundParts) {
    const { target } = call
    this.call = call
    this.parts = parts
    this.method = call.method
    this.url = target.url
    this.origin = target.origin.key
    this.scheme = target.origin.scheme
    this.host = target.origin.host
    this.port = target.origin.port
    this.path = target.path
    this.readings = target.readings
    this.rawPath = target.path
    this.queryString = target.query ?? ''
    this.contentLength = contentLength
    this.now = parts.clock.now()
  }

  abstract get mcp(): McpHeads | undefined

  abstract get rawHeaders(): readonly string[]

  abstract get clientIp(): string

  get destination(): Destination | undefined {
    const { resolution, target } = this.call
    const ip = resolution?.addresses[0] ?? target.origin.address
    return ip === undefined ? undefined : destinationOf(ip)
  }

  get agent(): AgentFacts {
    const { agent, claims } = this.call
    const { id, name, ownerId, status, policyName, createdAt, tags } = agent
    return { id, name, ownerId, status, policyName, createdAt, tags, claims, trustScore: trustScore(agent, this.now) }
  }

  get activity(): Activity | undefined {
    return this.parts.activity.of(this.call.agent.id, this.now)
  }

  get spend(): SpendFacts | undefined {
    return this.call.spent
  }

  maxCost(body: Uint8Array): number | 'none' | undefined {
    const { bill } = this.parts
    return bill && maxCost(this.call, Buffer.from(body.buffer, body.byteOffset, body.byteLength), bill)
  }
}

export const live: CallKind<Admitted> = {
  viewOf: (exchange, parts) => new LiveView(exchange, parts),
  bodyOf(exchange, parts) {
    const { body } = exchange
    if (exchange.isTunnel) return unreadable
    return body === undefined
      ? receiveBody(exchange, parts.config.Proxy.MaxEvaluatedBodyBytes, parts)
      : { bytes: body, complete: true }
  },
  // The circuit may have opened meanwhile: the permit was given back for the time of the wait.
  stillHolds: (exchange, parts) => (holds(exchange, parts) ? passCircuit(exchange, parts) : 'again'),
  judge(exchange, decision, parts) {
    exchange.effect = parts.config.Policy.Mode === 'observe' ? 'Allow' : decision.decision
    if (exchange.effect !== 'Deny' || decision.decision === 'Allow') return undefined
    if (decision.source === 'default' && isOptionalOfMcp(exchange, parts)) return mcpPostOnly
    return refuse(deniedBy[decision.source] ?? 'policy_denied', decision.publicReason)
  },
}

const unreadable: HeldBody = { bytes: Buffer.alloc(0), complete: false }

/** The refusal for each source of a denial other than the policy. */
const deniedBy: { readonly [S in DecisionSource]?: RefusalCode } = {
  error: 'policy_error',
  'mcp-mismatch': 'mcp_mismatch',
}

const mcpPostOnly = refuse('mcp_post_only', undefined, { headers: ['Allow', 'POST'] })

/**
 * Whether this is an optional request of an MCP client: GET for the stream of the server, DELETE at the end of its session.
 * Only where the policy takes messages of MCP: the header fields are claims of the agent.
 */
function isOptionalOfMcp(exchange: Admitted, parts: OutboundParts): boolean {
  const { method, fields, hasBody, rawHeaders, rulebook } = exchange
  if (rulebook === undefined || hasBody || fields.upgrade) return false
  const isOptional =
    method === 'GET'
      ? fields.acceptsEvents
      : method === 'DELETE' && fieldValues(rawHeaders, 'mcp-session-id').length > 0
  return isOptional && isMcpEndpoint(rulebook, new MessageView(exchange, parts))
}

/** Reads a body of at most `max` bytes, and holds it. */
export function receiveBody(exchange: Admitted, max: number, parts: OutboundParts): Promise<HeldBody | Refusal> {
  // A slow body must not keep a probe of the circuit from other requests.
  closeCircuit(exchange, 'neutral', parts)
  exchange.continue()
  return holdBody(exchange, max, parts)
}

/**
 * Whether the rules in force now still allow a request without a body.
 *
 * @param repeats decides again although the rules are the same: time, trust and counters may have changed
 */
export function stillAllows(exchange: Decided, parts: OutboundParts, repeats: boolean): boolean {
  const rulebook = parts.rulebookOf(exchange.agent)
  if (rulebook === exchange.rulebook && !repeats) return true
  const found = decideHead(rulebook, new LiveView(exchange, parts))
  if (parts.config.Policy.Mode !== 'observe' && ('need' in found || found.decision !== 'Allow')) return false
  // It was opened with that of its decision, and is used on with it.
  if (!('need' in found) && found.credential !== exchange.decision.credential) return false
  exchange.rulebook = rulebook
  return true
}

/** Whether a call of this tool of the same MCP server would be refused, whatever its arguments. */
export function wouldDenyTool(exchange: Decided, name: string, parts: OutboundParts): boolean {
  const { rulebook } = exchange
  if (rulebook === undefined) return true
  const found = decideHead(rulebook, new ToolCallView(exchange, name, parts))
  return !('need' in found) && found.decision === 'Deny'
}

const none: readonly string[] = []

class LiveView extends RequestView<Admitted> {
  #rawHeaders: readonly string[] | undefined

  constructor(exchange: Admitted, parts: OutboundParts, contentLength = exchange.fields.contentLength) {
    super(exchange, exchange.isTunnel ? -1 : contentLength, parts)
  }

  get mcp(): McpHeads | undefined {
    const { fields, method, hasBody } = this.call
    return fields.mcp ? readMcpHeads({ method, hasBody, rawHeaders: this.rawHeaders }) : undefined
  }

  /** The gateway's own field is hidden from rules by its name; those of virtual hosts may be the upstream's as well. */
  get rawHeaders(): readonly string[] {
    const { rawHeaders, fields, tokenNames, addressing } = this.call
    // Those of CONNECT are for the gateway.
    if (this.call.isTunnel) return none
    const isHiddenByName = tokenNames.length <= 1 && addressing.standsFor === undefined && addressing.road === undefined
    this.#rawHeaders ??= withoutNominated(isHiddenByName ? rawHeaders : withoutTokens(rawHeaders, tokenNames), fields)
    return this.#rawHeaders
  }

  get clientIp(): string {
    const { socket, rawHeaders } = this.call
    return this.parts.clientIpOf(socket, rawHeaders)
  }
}

/** A message of MCP to the URL of another request. */
class MessageView extends LiveView {
  override readonly method = 'POST'

  constructor(exchange: Admitted, parts: OutboundParts) {
    super(exchange, parts, -1)
  }

  override get mcp(): undefined {
    return undefined
  }
}

/** The call of a tool by an agent that asks for the list of tools. Only the body differs. */
class ToolCallView extends LiveView {
  readonly #name: string

  constructor(exchange: Decided, name: string, parts: OutboundParts) {
    super(exchange, parts, -1)
    this.#name = name
  }

  override get mcp(): McpHeads {
    return { method: 'tools/call', name: this.#name, version: undefined, malformed: undefined }
  }
}
