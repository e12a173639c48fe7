import { Readable } from 'node:stream'
import { agentProblem } from '../agents/agent.ts'
import { parseTarget, type Target } from '../base/target.ts'
import { isRefusal, type Refusal, refuse } from '../errors.ts'
import type { HeldFacts, HeldRequest, NotSent, ReplayResult, Send, SendContext } from '../hitl/model.ts'
import { downstreamFields } from '../http/headers.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import type { AgentRecord } from '../storage/store.ts'
import { keyIdOf } from '../tokens/agent-key.ts'
import { withCredentials } from '../upstream/credentials.ts'
import { failureKind, isPublicDestination, noteFailure, outcomeOfError, refuseFailure } from '../upstream/failure.ts'
import {
  type Control,
  type ResponseHead,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../upstream/handler.ts'
import type { Resolution } from '../upstream/resolve.ts'
import { outcomeOfStatus, refuseOpenCircuit } from './circuit.ts'
import { firstOnly } from './decide.ts'
import { type HeldParts, refuseHeld } from './decide-held.ts'
import type { Parts } from './parts.ts'

type SenderParts = HeldParts &
  Pick<
    Parts,
    'agentOf' | 'bounds' | 'breaker' | 'connections' | 'credentials' | 'fencedAs' | 'metrics' | 'route' | 'rulebookOf'
  >

/**
 * Sends an approved request: the same checks of policy, destination and circuit as for a proxied request, made again
 * now, and a connection that nothing else uses (spec 4.5).
 */
export function createSender(parts: SenderParts): Send {
  return async (request, context) => {
    for (;;) {
      const result = await attempt(request, context, parts)
      // The rules changed during the wait for a connection: decide again, as long as the attempt may begin.
      if (result !== 'again') return result
    }
  }
}

async function attempt(request: HeldRequest, context: SendContext, parts: SenderParts): Promise<Attempted> {
  const { agentId, facts, sendBefore, isLate, abandoned } = context
  const ready = await prepare(request, context, parts)
  if (isRefusal(ready)) return { kind: 'notSent', refusal: ready }
  const { target, resolution, rulebook, credentials } = ready
  const permit = parts.breaker.acquire(target.origin.key, agentId, parts.clock)
  if (typeof permit === 'number') return { kind: 'notSent', refusal: refuseOpenCircuit(permit) }
  return new Promise(resolve => {
    const handler = new Replay({
      resolve,
      learnt: outcome => parts.breaker.release(permit, outcome, parts.clock),
      problem: () => problemOf(parts.agentOf(agentId), { facts, rulebook }, parts),
      isLate,
      refusalOf(error) {
        return noted(refuseFailure(failureKind(error), isPublicDestination(resolution)), context, parts)
      },
    })
    abandoned.addEventListener('abort', () => handler.abandon())
    const connectWithinMs = Math.max(0, sendBefore - parts.clock.steady())
    const sent = { ...upstreamRequest(request, target, credentials), connectWithinMs }
    parts.connections.sendAlone(target.origin, resolution, sent, handler)
  })
}

/** Why an approved request may not be sent; `again` when other rules are in force than those that decided. */
function problemOf(
  agent: AgentRecord | undefined,
  { facts, rulebook }: Pick<SendContext, 'facts'> & Pick<Ready, 'rulebook'>,
  parts: SenderParts,
): Refusal | 'again' | undefined {
  const fenced = parts.fencedAs()
  if (fenced !== undefined) return refuse(fenced)
  if (agent === undefined) return agentProblem(agent)
  const problem = agentProblem(agent) ?? keyProblem(agent, facts)
  return problem ?? (parts.rulebookOf(agent) === rulebook ? undefined : 'again')
}

const keyRevoked = refuse(
  'wrong_state',
  'The key with which the agent sent this request has been revoked. It was not sent: deny it, or let it lapse.',
)

/** The sender of the request may be someone who had a revoked key. */
function keyProblem({ keys }: AgentRecord, { claims }: HeldFacts): Refusal | undefined {
  const keyId = keyIdOf(claims)
  return keyId === undefined || keys.some(({ id }) => id === keyId) ? undefined : keyRevoked
}

/** A request that may be sent now. */
interface Ready {
  readonly target: Target
  readonly resolution: Resolution
  /** The rules that decided. */
  readonly rulebook: Rulebook
  readonly credentials: readonly string[]
}

async function prepare(request: HeldRequest, context: SendContext, parts: SenderParts): Promise<Ready | NotSent> {
  const { agentId, facts, approvals } = context
  const target = parseTarget(request.url)
  if (typeof target === 'string') return refuse('invalid_target', target)
  const agent = parts.agentOf(agentId)
  if (agent === undefined) return refuse('unauthenticated')
  const revoked = keyProblem(agent, facts)
  if (revoked !== undefined) return revoked
  const blocked = parts.route.refuseName(target.origin)
  if (blocked !== undefined) return blocked
  const rulebook = parts.rulebookOf(agent)
  // As for a proxied request: a name is looked up after the decision, unless a rule reads the address.
  const address = rulebook.readsDestination ? await reach(target, context, parts) : undefined
  if (isRefusal(address)) return address
  const pinned = address && firstOnly(address)
  const held = { request, facts, approvals, target, agent, resolution: pinned }
  const denied = await refuseHeld(held, rulebook, parts)
  if (denied !== undefined) return denied
  const resolution = pinned ?? (await reach(target, context, parts))
  if (isRefusal(resolution)) return resolution
  const credentials = credentialsFor(request, target, agent, parts)
  return isRefusal(credentials) ? credentials : { target, resolution, rulebook, credentials }
}

async function reach({ origin }: Target, context: SendContext, parts: SenderParts): Promise<Resolution | Refusal> {
  const found = await parts.route.find(origin, context.agentId)
  return isRefusal(found) ? noted(found, context, parts) : found
}

function noted(refusal: Refusal, { agentId, requestId }: SendContext, parts: SenderParts): Refusal {
  if (refusal.failure !== undefined) {
    noteFailure(refusal.failure, { agentId, requestId: requestId ?? undefined }, parts)
  }
  return refusal
}

/** They are added when the request leaves: the held and shown request does not contain them. */
function credentialsFor(
  { rawHeaders }: HeldRequest,
  { origin }: Target,
  agent: AgentRecord,
  { credentials }: SenderParts,
): readonly string[] | Refusal {
  if (credentials === undefined) return []
  return credentials.fieldsFor({ origin, agent, rawHeaders, tokenNames: [] })
}

function upstreamRequest(request: HeldRequest, target: Target, credentials: readonly string[]): UpstreamRequest {
  return {
    method: request.method,
    path: target.requestTarget,
    fields: withCredentials(request.rawHeaders, credentials),
    body: request.body.byteLength === 0 ? null : Buffer.from(request.body),
  }
}

type Attempted = ReplayResult | 'again'

interface ReplayParts {
  readonly resolve: (result: Attempted) => void
  readonly learnt: (outcome: Outcome) => void
  /** Why it may not be sent now. */
  readonly problem: () => Refusal | 'again' | undefined
  /** Another attempt may have begun. */
  readonly isLate: () => boolean
  /** The refusal for the reviewer. Counts the failure. */
  readonly refusalOf: (error: Error) => Refusal
}

/** Turns the answer of a replay into a value with a body to read. */
class Replay implements UpstreamHandler {
  readonly #parts: ReplayParts
  #control: Control | undefined = undefined
  #body: Readable | undefined = undefined
  /** Why it was not sent, though there was a connection. */
  #refused: Refusal | 'again' | undefined = undefined

  constructor(parts: ReplayParts) {
    this.#parts = parts
  }

  /** The gateway stops. */
  abandon(): void {
    this.#control?.abort(new Error('the gateway stops'))
  }

  onRequestStart(control: Control): void {
    if (this.#parts.isLate())
      control.abort(new UpstreamError('connect_timeout', 'the right to send ended before the sending'))
    else {
      this.#refused = this.#parts.problem()
      // The last moment before its bytes are written: the look-up and the dial may have taken long.
      if (this.#refused !== undefined) control.abort(new Error('the right to send is gone'))
      else this.#control = control
    }
  }

  onResponseStart({ status, fields }: ResponseHead): void {
    this.#parts.learnt(outcomeOfStatus(status))
    const body = new Readable({
      read: () => this.#control?.resume(),
      // The reader may disconnect. Without this the exchange would wait forever.
      destroy: (error, done) => {
        this.#control?.abort(new Error('nobody reads the answer'))
        done(error)
      },
    })
    this.#body = body
    this.#parts.resolve({ kind: 'answered', status, rawHeaders: downstreamFields(fields), body })
  }

  onResponseData(chunk: Buffer): void {
    if (this.#body?.push(Buffer.from(chunk)) === false) this.#control?.pause()
  }

  onResponseEnd(): void {
    this.#body?.push(null)
  }

  onResponseError(error: Error): void {
    if (this.#body !== undefined) {
      this.#body.destroy(error)
      return
    }
    this.#parts.learnt(this.#refused === undefined ? outcomeOfError(error, this.#control !== undefined) : 'neutral')
    const refused = this.#refused
    // No byte was sent, so the request can be decided again.
    const kind = this.#control === undefined ? 'notSent' : 'failed'
    this.#parts.resolve(refused === 'again' ? refused : { kind, refusal: refused ?? this.#parts.refusalOf(error) })
  }
}
