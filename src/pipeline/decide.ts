import { literalAddress } from '../base/address.ts'
import type { Target } from '../base/target.ts'
import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import { withoutNominated } from '../http/headers.ts'
import type { Rulebook } from '../policy/evaluation/decide.ts'
import { BodyDecision, decideHead } from '../policy/evaluation/decide.ts'
import type { Decision, NeedBody } from '../policy/evaluation/decision.ts'
import { destinationOf } from '../policy/request/destination.ts'
import type { Activity, AgentFacts, Destination, RequestHead } from '../policy/request/input.ts'
import type { AgentRecord } from '../storage/store.ts'
import { noteFailure } from '../upstream/failure.ts'
import type { Resolution } from '../upstream/resolve.ts'
import type { Found } from '../upstream/route.ts'
import { closeCircuit, passCircuit } from './circuit.ts'
import type { Exchange, Outcome, Step } from './exchange.ts'
import type { HeldBody } from './hold-body.ts'
import { holdBody } from './hold-body.ts'
import type { Parts } from './parts.ts'
import { holds, isOver } from './rights.ts'

/**
 * Asks for a decision and sees that the destination may be reached. From the head when that settles it; only
 * otherwise is the body held (spec 1, 4.4). The name is looked up after the decision, unless a rule reads the
 * address: a refused request must not carry anything out in a DNS question.
 */
export function decide(exchange: Exchange, parts: Parts): Step {
  const { agent, target } = exchange
  if (agent === undefined || target === undefined) throw new Error('cannot happen: decided before the checks')
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

async function evaluateAddress(exchange: Exchange, rulebook: Rulebook, parts: Parts): Promise<Outcome> {
  const unreachable = await reach(exchange, parts)
  if (unreachable !== undefined) return unreachable
  if (exchange.resolution !== undefined) exchange.resolution = firstOnly(exchange.resolution)
  return evaluateHead(exchange, rulebook, parts)
}

function evaluateHead(exchange: Exchange, rulebook: Rulebook, parts: Parts): Step {
  const head = new RequestView(exchange, parts)
  const start = parts.clock.steady()
  const first = decideHead(rulebook, head)
  noteTime(exchange, start, parts)
  if ('need' in first) return evaluateBody(exchange, { rulebook, head, first }, parts)
  return settle(exchange, first, parts)
}

/** A decision for which the head was not enough. */
interface Open {
  readonly rulebook: Rulebook
  readonly head: RequestHead
  /** Undefined when the head was enough for the decision, but not for its risk. */
  readonly first: NeedBody | undefined
}

async function evaluateBody(exchange: Exchange, { rulebook, head, first }: Open, parts: Parts): Promise<Outcome> {
  const held =
    exchange.body === undefined ? await receiveBody(exchange, parts) : { bytes: exchange.body, complete: true }
  if (isRefusal(held)) return held
  const open = new BodyDecision(rulebook, head, first, held)
  const decision = await takeTurns(exchange, open, parts)
  // The body may have taken minutes. Behind a right that is gone not even the name is looked up.
  if (decision === undefined || isOver(exchange)) return undefined
  if (!holds(exchange, parts)) return 'again'
  const refusal = exchange.permit === undefined ? passCircuit(exchange, parts) : undefined
  return refusal ?? settle(exchange, decision, parts)
}

/**
 * Decides again with the body when the head alone decided: what looks at the risk of a request must see all of it.
 */
export function decideWhole(exchange: Exchange, parts: Parts): Step {
  const { decision, rulebook } = exchange
  if (rulebook === undefined || decision?.phase !== 'head' || !exchange.hasBody) return undefined
  return evaluateBody(exchange, { rulebook, head: new RequestView(exchange, parts), first: undefined }, parts)
}

/**
 * Decides short bodies at once and long ones in turns, so that their content cannot keep the event loop busy. Undefined
 * when the client left meanwhile.
 */
async function takeTurns(exchange: Exchange, open: BodyDecision, parts: Parts): Promise<Decision | undefined> {
  for (let begun = false; ; begun = true) {
    if (open.isLong) await parts.workTurns.next(exchange.agent?.id ?? '', begun)
    if (isOver(exchange)) return undefined
    const start = parts.clock.steady()
    const decision = open.takeTurn()
    noteTime(exchange, start, parts)
    if (decision !== undefined) return decision
  }
}

async function receiveBody(exchange: Exchange, parts: Parts): Promise<HeldBody | Refusal> {
  const { MaxEvaluatedBodyBytes, OversizeBody } = parts.config.Proxy
  // A body that comes drop by drop must not keep a probe of the circuit from everybody else.
  closeCircuit(exchange, 'neutral', parts)
  exchange.continue()
  const held = await holdBody(exchange, MaxEvaluatedBodyBytes, parts)
  if (isRefusal(held)) return held
  if (held.complete) exchange.body = held.bytes
  else {
    if (OversizeBody === 'reject') return refuse('body_too_large')
    exchange.req.unshift(held.bytes)
  }
  return held
}

/** Keeps the decision and sees to it: a refusal, or the way to the destination. */
function settle(exchange: Exchange, decision: Decision, parts: Parts): Step {
  exchange.decision = decision
  exchange.effect = parts.config.Policy.Mode === 'observe' ? 'Allow' : decision.decision
  if (exchange.effect === 'Deny' && decision.decision === 'Deny') {
    return refuse(decision.source === 'error' ? 'policy_error' : 'policy_denied', decision.publicReason)
  }
  return exchange.resolution === undefined ? reach(exchange, parts) : undefined
}

/** What the decision itself takes; not the wait for the body in between. */
function noteTime(exchange: Exchange, start: number, { clock }: Parts): void {
  exchange.decisionNs += Math.round((clock.steady() - start) * 1e6)
}

/** Finds the addresses of the target; they are the only ones the connection may go to. */
function reach(exchange: Exchange, parts: Parts): Step {
  const { origin } = exchange.target as Target
  const found = parts.route.find(origin, exchange.agent?.id)
  return found instanceof Promise
    ? found.then(late => noteFound(exchange, late, parts))
    : noteFound(exchange, found, parts)
}

function noteFound(exchange: Exchange, found: Found, parts: Parts): Refusal | undefined {
  if (!isRefusal(found)) {
    exchange.resolution = found
    return undefined
  }
  const { agent, requestId } = exchange
  if (found.failure !== undefined) noteFailure(found.failure, { agentId: agent?.id, requestId }, parts)
  return found
}

/** A decision on the address is one on the address connected to: of several, the first, and no other. */
export function firstOnly(resolution: Resolution): Resolution {
  return { ...resolution, addresses: resolution.addresses.slice(0, 1) }
}

/** An agent as the decision point sees it. */
export function agentFacts(agent: AgentRecord, claims: AgentFacts['claims'], trustScore: number): AgentFacts {
  const { id, name, ownerId, status, policyName, createdAt, tags } = agent
  return { id, name, ownerId, status, policyName, createdAt, tags, claims, trustScore }
}

/** The request as the decision point sees it. Costly views are made when a rule asks for them. */
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
  readonly rawHeaders: readonly string[]
  readonly contentLength: number
  readonly now: number
  readonly #exchange: Exchange
  readonly #parts: Parts

  constructor(exchange: Exchange, parts: Parts) {
    const target = exchange.target as Target
    this.#exchange = exchange
    this.#parts = parts
    this.method = exchange.req.method as string
    this.url = target.url
    this.origin = target.origin.key
    this.scheme = target.origin.scheme
    this.host = target.origin.host
    this.port = target.origin.port
    this.path = target.path
    this.readings = target.readings
    this.rawPath = target.path
    this.queryString = target.query ?? ''
    this.rawHeaders = withoutNominated(exchange.req.rawHeaders, exchange.fields)
    this.contentLength = exchange.fields.contentLength
    this.now = parts.clock.now()
  }

  get clientIp(): string {
    const { socket, req } = this.#exchange
    return this.#parts.clientIpOf(socket, req.rawHeaders)
  }

  get destination(): Destination | undefined {
    const { resolution, target } = this.#exchange
    const ip = resolution?.addresses[0] ?? literalAddress(target?.origin.host ?? '')
    return ip === undefined ? undefined : destinationOf(ip)
  }

  get agent(): AgentFacts {
    const agent = this.#exchange.agent as AgentRecord
    return agentFacts(agent, this.#exchange.claims ?? {}, this.#parts.trustOf(agent, this.now))
  }

  get activity(): Activity | undefined {
    return this.#parts.activityOf((this.#exchange.agent as AgentRecord).id, this.now)
  }
}
