import { trustScore } from '../agents/agent.ts'
import type { Activity } from '../base/activity.ts'
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../errors.ts'
import { withoutNominated, withoutTokens } from '../http/headers.ts'
import { BodyDecision, decideHead } from '../policy/evaluation/decide.ts'
import type { Decision, DecisionSource, NeedBody } from '../policy/evaluation/decision.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import { destinationOf } from '../policy/request/destination.ts'
import type { AgentFacts, Destination, RequestHead } from '../policy/request/input.ts'
import { type McpHeads, readMcpHeads } from '../policy/request/mcp-heads.ts'
import type { AgentRecord } from '../storage/store.ts'
import { noteFailure } from '../upstream/failure.ts'
import type { Resolution } from '../upstream/resolve.ts'
import type { Found } from '../upstream/route.ts'
import { closeCircuit, passCircuit } from './circuit.ts'
import type { Admitted, Decided, Outcome, Step } from './exchange.ts'
import { type HeldBody, holdBody } from './hold-body.ts'
import type { Parts } from './parts.ts'
import { holds, isOver } from './rights.ts'

/**
 * Asks for a decision and checks that the destination may be reached. The body is held only when the head does not
 * settle the decision (spec 1, 4.4). The name is looked up after the decision, unless a rule reads the address: a
 * refused request must not leak anything in a DNS question.
 */
export function decide(exchange: Admitted, parts: Parts): Step {
  const { agent, target } = exchange
  const { MaxRequestBytes } = parts.config.Proxy
  if (MaxRequestBytes > 0 && exchange.fields.contentLength > MaxRequestBytes) return refuse('body_too_large')
  const blocked = parts.route.refuseName(target.origin)
  if (blocked !== undefined) return blocked
  const rulebook = parts.rulebookOf(agent)
  exchange.rulebook = rulebook
  return rulebook.readsDestination
    ? evaluateAddress(exchange, rulebook, parts)
    : evaluateHead(exchange, rulebook, parts)
}

async function evaluateAddress(exchange: Admitted, rulebook: Rulebook, parts: Parts): Promise<Outcome> {
  const unreachable = await reach(exchange, parts)
  if (unreachable !== undefined) return unreachable
  if (exchange.resolution !== undefined) exchange.resolution = firstOnly(exchange.resolution)
  return evaluateHead(exchange, rulebook, parts)
}

function evaluateHead(exchange: Admitted, rulebook: Rulebook, parts: Parts): Step {
  const head = new RequestView(exchange, parts)
  const start = startOf(parts)
  const first = decideHead(rulebook, head)
  noteTime(exchange, start, parts)
  if ('need' in first) return evaluateBody(exchange, { rulebook, head, first }, parts)
  return apply(exchange, first, parts)
}

/** A decision that needs the body. */
interface Open {
  readonly rulebook: Rulebook
  readonly head: RequestHead
  /** Undefined when the head was enough for the decision, but not for its risk score. */
  readonly first: NeedBody | undefined
}

async function evaluateBody(exchange: Admitted, { rulebook, head, first }: Open, parts: Parts): Promise<Outcome> {
  const { MaxEvaluatedBodyBytes, OversizeBody } = parts.config.Proxy
  const held =
    exchange.body === undefined ? await receiveBody(exchange, MaxEvaluatedBodyBytes, parts) : wholeOf(exchange.body)
  if (isRefusal(held)) return held
  if (!held.complete && OversizeBody === 'reject') return refuse('body_too_large')
  const open = new BodyDecision(rulebook, head, first, held)
  const taken = takeTurns(exchange, open, parts)
  const decision = taken instanceof Promise ? await taken : taken
  // The body may have taken minutes. Without the right to go on not even the name is looked up.
  if (decision === undefined || isOver(exchange)) return undefined
  if (!holds(exchange, parts)) return 'again'
  return passCircuit(exchange, parts) ?? apply(exchange, decision, parts)
}

/**
 * Decides again with the body when the head alone decided: the risk must be computed over the whole request.
 */
export function decideWhole(exchange: Admitted, parts: Parts): Step {
  const { decision, rulebook } = exchange
  if (rulebook === undefined || decision?.phase !== 'head' || !exchange.hasBody) return undefined
  return evaluateBody(exchange, { rulebook, head: new RequestView(exchange, parts), first: undefined }, parts)
}

/**
 * Decides short bodies at once while this round of the event loop has room, and others in turns, so that neither their
 * content nor their number can keep it busy. Undefined when the client left meanwhile.
 */
function takeTurns(
  exchange: Admitted,
  open: BodyDecision,
  parts: Parts,
): Decision | undefined | Promise<Decision | undefined> {
  if (isOver(exchange)) return undefined
  const begun = !open.isLong && parts.workTurns.hasRoom
  const decision = begun ? takeTurn(exchange, open, parts) : undefined
  return decision ?? awaitTurns(exchange, open, { parts, begun })
}

interface Turns {
  readonly parts: Parts
  /** It has had a turn. */
  readonly begun: boolean
}

async function awaitTurns(
  exchange: Admitted,
  open: BodyDecision,
  { parts, begun }: Turns,
): Promise<Decision | undefined> {
  for (let again = begun; ; again = true) {
    await parts.workTurns.next(exchange.agent.id, again)
    if (isOver(exchange)) return undefined
    const decision = takeTurn(exchange, open, parts)
    if (decision !== undefined) return decision
  }
}

function takeTurn(exchange: Admitted, open: BodyDecision, parts: Parts): Decision | undefined {
  const start = startOf(parts)
  const decision = open.takeTurn()
  noteTime(exchange, start, parts)
  parts.workTurns.spend(open.steps)
  return decision
}

const wholeOf = (bytes: Buffer): HeldBody => ({ bytes, complete: true })

/** Reads a body of at most `most` bytes, and keeps it. */
export function receiveBody(exchange: Admitted, most: number, parts: Parts): Promise<HeldBody | Refusal> {
  // A slow body must not keep a probe of the circuit from other requests.
  closeCircuit(exchange, 'neutral', parts)
  exchange.continue()
  return holdBody(exchange, most, parts)
}

/** Keeps the decision and carries it out: refuses the request, or looks up its destination. */
function apply(exchange: Admitted, decision: Decision, parts: Parts): Step {
  exchange.decision = decision
  exchange.effect = parts.config.Policy.Mode === 'observe' ? 'Allow' : decision.decision
  if (exchange.effect === 'Deny' && decision.decision === 'Deny') {
    return refuse(deniedBy[decision.source] ?? 'policy_denied', decision.publicReason)
  }
  return exchange.resolution === undefined ? reach(exchange, parts) : undefined
}

/** The refusal for each source of a denial other than the policy. */
const deniedBy: { readonly [S in DecisionSource]?: RefusalCode } = {
  error: 'policy_error',
  'mcp-mismatch': 'mcp_mismatch',
}

/** Time on the CPU for the log, without the wait for the body in between. The clock costs time too. */
const startOf = ({ config, clock }: Parts): number => (config.Logging.Access ? clock.steady() : 0)

function noteTime(exchange: Admitted, start: number, { config, clock }: Parts): void {
  if (config.Logging.Access) exchange.decisionNs += Math.round((clock.steady() - start) * 1e6)
}

/** Finds the addresses of the target; the connection may go to no other. */
function reach(exchange: Admitted, parts: Parts): Step {
  const found = parts.route.find(exchange.target.origin, exchange.agent.id)
  return found instanceof Promise
    ? found.then(late => noteFound(exchange, late, parts))
    : noteFound(exchange, found, parts)
}

function noteFound(exchange: Admitted, found: Found, parts: Parts): Refusal | undefined {
  if (!isRefusal(found)) {
    exchange.resolution = found
    return undefined
  }
  const { agent, requestId } = exchange
  if (found.failure !== undefined) noteFailure(found.failure, { agentId: agent.id, requestId }, parts)
  return found
}

/** A rule that reads the address decides on the one that is connected to: the first one alone. */
export function firstOnly(resolution: Resolution): Resolution {
  return { ...resolution, addresses: resolution.addresses.slice(0, 1) }
}

/** An agent as policies see it. */
export function agentFacts(agent: AgentRecord, claims: AgentFacts['claims'], now: number): AgentFacts {
  const { id, name, ownerId, status, policyName, createdAt, tags } = agent
  return { id, name, ownerId, status, policyName, createdAt, tags, claims, trustScore: trustScore(agent, now) }
}

/**
 * Whether the rules in force now still allow a request without a body.
 *
 * @param anew decides again although the rules are the same: time, trust and counters may have changed
 */
export function stillAllows(exchange: Decided, parts: Parts, anew: boolean): boolean {
  const rulebook = parts.rulebookOf(exchange.agent)
  if (rulebook === exchange.rulebook && !anew) return true
  const found = decideHead(rulebook, new RequestView(exchange, parts))
  if (parts.config.Policy.Mode !== 'observe' && ('need' in found || found.decision !== 'Allow')) return false
  exchange.rulebook = rulebook
  return true
}

/** Whether a call of this tool of the same MCP server would be refused with any arguments. */
export function wouldDenyTool(exchange: Decided, name: string, parts: Parts): boolean {
  const { rulebook } = exchange
  if (rulebook === undefined) return true
  const found = decideHead(rulebook, new ToolCallView(exchange, name, parts))
  return !('need' in found) && found.decision === 'Deny'
}

/** The request as policies see it. Costly views are made when a rule asks for them. */
class RequestView implements RequestHead {
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
  readonly #exchange: Admitted
  readonly #parts: Parts
  #rawHeaders: readonly string[] | undefined

  constructor(exchange: Admitted, parts: Parts) {
    const { target } = exchange
    this.#exchange = exchange
    this.#parts = parts
    this.method = exchange.method
    this.url = target.url
    this.origin = target.origin.key
    this.scheme = target.origin.scheme
    this.host = target.origin.host
    this.port = target.origin.port
    this.path = target.path
    this.readings = target.readings
    this.rawPath = target.path
    this.queryString = target.query ?? ''
    this.contentLength = exchange.fields.contentLength
    this.now = parts.clock.now()
  }

  get mcp(): McpHeads | undefined {
    const { fields, method, hasBody } = this.#exchange
    return fields.mcp ? readMcpHeads({ method, hasBody, rawHeaders: this.rawHeaders }) : undefined
  }

  /** The gateway's own field is hidden from rules by its name; those of virtual hosts may be the upstream's as well. */
  get rawHeaders(): readonly string[] {
    const { req, fields, tokenNames, addressing } = this.#exchange
    const isHiddenByName = tokenNames.length <= 1 && typeof addressing === 'string'
    this.#rawHeaders ??= withoutNominated(
      isHiddenByName ? req.rawHeaders : withoutTokens(req.rawHeaders, tokenNames),
      fields,
    )
    return this.#rawHeaders
  }

  get clientIp(): string {
    const { socket, req } = this.#exchange
    return this.#parts.clientIpOf(socket, req.rawHeaders)
  }

  get destination(): Destination | undefined {
    const { resolution, target } = this.#exchange
    const ip = resolution?.addresses[0] ?? target.origin.address
    return ip === undefined ? undefined : destinationOf(ip)
  }

  get agent(): AgentFacts {
    const { agent, claims } = this.#exchange
    return agentFacts(agent, claims, this.now)
  }

  get activity(): Activity | undefined {
    return this.#parts.activityOf(this.#exchange.agent.id, this.now)
  }
}

/** The call of a tool by an agent that asks for the list of tools. Only the body differs. */
class ToolCallView extends RequestView {
  readonly #name: string
  override readonly contentLength = -1

  constructor(exchange: Decided, name: string, parts: Parts) {
    super(exchange, parts)
    this.#name = name
  }

  override get mcp(): McpHeads {
    return { method: 'tools/call', name: this.#name, version: undefined, malformed: undefined }
  }
}
