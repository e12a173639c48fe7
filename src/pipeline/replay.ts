import { Readable } from 'node:stream'
import { agentProblem } from '../agents/agent.ts'
import type { Target } from '../base/target.ts'
import { parseTarget } from '../base/target.ts'
import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import type { HeldRequest, ReplayResult, Send } from '../hitl/model.ts'
import { downstreamFields } from '../http/headers.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { AgentRecord } from '../storage/store.ts'
import { withCredentials } from '../upstream/credentials.ts'
import type { Control, Lease, ResponseHead, UpstreamHandler, UpstreamRequest } from '../upstream/handler.ts'
import { mostInterim, UpstreamError } from '../upstream/handler.ts'
import type { Resolution } from '../upstream/resolve.ts'
import { outcomeOfStatus, refuseOpenCircuit } from './circuit.ts'
import { outcomeOfError, refusalOf } from './failure.ts'
import type { Parts } from './parts.ts'

type SenderParts = Pick<Parts, 'agentOf' | 'breaker' | 'clock' | 'connections' | 'credentials' | 'egress' | 'resolver'>

/**
 * Sends what a person has approved: the same checks of destination and circuit as on the proxy road, made again
 * now, and a connection that nothing else uses (spec 4.5).
 */
export function createSender(parts: SenderParts): Send {
  return async (request, { agentId, sendBefore, abandoned }) => {
    const target = parseTarget(request.url)
    if (typeof target === 'string') return { kind: 'notSent', refusal: refuse('invalid_target', target) }
    const resolution = await reach(target, agentId, parts)
    if (isRefusal(resolution)) return { kind: 'notSent', refusal: resolution }
    const credentials = credentialsFor(request, target, parts.agentOf(agentId), parts)
    if (isRefusal(credentials)) return { kind: 'notSent', refusal: credentials }
    const permit = parts.breaker.acquire(target.origin.key, agentId, parts.clock.steady())
    if (typeof permit === 'number') return { kind: 'notSent', refusal: refuseOpenCircuit(permit) }
    return new Promise(resolve => {
      const handler = new Replay({
        resolve,
        learnt: outcome => parts.breaker.release(permit, outcome, parts.clock.steady()),
        problem: () => agentProblem(parts.agentOf(agentId)),
        isLate: () => abandoned.aborted || parts.clock.steady() >= sendBefore,
      })
      abandoned.addEventListener('abort', () => handler.abandon())
      const connectWithinMs = Math.max(0, sendBefore - parts.clock.steady())
      const sent = { ...upstreamRequest(request, target, credentials), connectWithinMs }
      parts.connections.sendAlone(target.origin, resolution, sent, handler)
    })
  }
}

async function reach(
  target: Target,
  agentId: string,
  { egress, resolver }: SenderParts,
): Promise<Resolution | Refusal> {
  const blocked = egress.checkHost(target.origin)
  if (blocked !== undefined) return blocked
  const resolution = await resolver.resolve(target.origin.host, agentId)
  if ('failed' in resolution) return refuse('upstream_failed')
  return egress.checkAddresses(target.origin, resolution.addresses) ?? resolution
}

/** They are added when the request leaves: what was held and shown has none. */
function credentialsFor(
  { rawHeaders }: HeldRequest,
  { origin }: Target,
  agent: AgentRecord | undefined,
  { credentials }: SenderParts,
): readonly string[] | Refusal {
  if (credentials === undefined || agent === undefined) return []
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

interface ReplayParts {
  readonly resolve: (result: ReplayResult) => void
  readonly learnt: (outcome: Outcome) => void
  /** Why the agent may not act now. */
  readonly problem: () => Refusal | undefined
  /** Another attempt may have begun. */
  readonly isLate: () => boolean
}

/** Turns the answer of a replay into a value with a body to read. */
class Replay implements UpstreamHandler {
  lease: Lease | undefined = undefined
  readonly #parts: ReplayParts
  #control: Control | undefined = undefined
  #body: Readable | undefined = undefined
  #interim = 0
  /** Why it was not sent, though there was a connection. */
  #refused: Refusal | undefined = undefined

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
      if (this.#refused !== undefined) control.abort(new Error(this.#refused.refusal))
      else this.#control = control
    }
  }

  onInterim(): void {
    this.#interim += 1
    if (this.#interim > mostInterim) throw new UpstreamError('malformed', 'interim answers without end')
  }

  onResponseStart({ status, fields }: ResponseHead): void {
    this.#parts.learnt(outcomeOfStatus(status))
    const body = new Readable({
      read: () => this.#control?.resume(),
      // Whoever reads it may leave, and it would stand still for good.
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
    this.lease?.release(true)
    this.#body?.push(null)
  }

  onResponseError(error: Error): void {
    this.lease?.release(false)
    if (this.#body !== undefined) {
      this.#body.destroy(error)
      return
    }
    this.#parts.learnt(this.#refused === undefined ? outcomeOfError(error, this.#control !== undefined) : 'neutral')
    // Not a byte was sent: nothing has happened, and the request can be decided again.
    this.#parts.resolve({
      kind: this.#control === undefined ? 'notSent' : 'failed',
      refusal: this.#refused ?? refusalOf(error),
    })
  }
}
