/** The table of failures on the way to an upstream: the same for agents, approved requests and requests of the gateway. */
import { classifyAddress } from '../base/address.ts'
import type { FailureKind } from '../base/failure-kinds.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { CircuitOutcome } from '../limits/breaker.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import { type BoundName, failures } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import {
  RefusedStreamError,
  StaleConnectionError,
  UpstreamBusyError,
  UpstreamError,
  type UpstreamRequest,
} from './handler.ts'

/** Errors of the system whose code names the kind of failure. */
const kinds: Readonly<Record<string, FailureKind>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'connect_timeout',
  EMFILE: 'descriptors',
  ENFILE: 'descriptors',
  ENOBUFS: 'memory',
  ENOMEM: 'memory',
  EADDRNOTAVAIL: 'ports',
}

/** Failures that are the gateway's own: they say nothing of the upstream, and pass by themselves. */
const ownLimits: { readonly [kind in FailureKind]?: BoundName } = {
  busy: 'origin_waiting',
  name_busy: 'lookups',
  descriptors: 'descriptors',
  memory: 'memory',
  ports: 'ports',
}

/** OpenSSL names its reasons without a common beginning; these are the ones of a certificate that does not do. */
const certificateCode = /^(?:CERT_|ERR_TLS_|ERR_SSL_|EPROTO$|DEPTH_|SELF_SIGNED_|UNABLE_TO_)/

/** Why an upstream request failed, as one of few kinds: for counters. */
export function failureKind(error: Error): FailureKind {
  if (error instanceof UpstreamBusyError) return 'busy'
  if (error instanceof UpstreamError) return error.fault
  const code = codeOf(error)
  const known = kinds[code]
  if (known !== undefined) return known
  return certificateCode.test(code) ? 'tls' : 'other'
}

/** The upstream is there, and slow: a model may think for longer than one agent waits. */
const slowAnswers: ReadonlySet<FailureKind> = new Set(['headers_timeout', 'body_timeout'])

/** Whose request failed. */
interface FailureContext {
  readonly agentId: string | undefined
  readonly requestId: string | undefined
  /** Of the upstream. */
  readonly host: string
}

interface FailureCounters {
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics
  readonly bounds: Bounds
}

/** Counts a failed upstream request, and reports the limit of the gateway that it reached. */
export function noteFailure(
  kind: FailureKind,
  { agentId, requestId, host }: FailureContext,
  counters: FailureCounters,
): void {
  counters.metrics.countOf(host, failures, kind)
  const limit = ownLimits[kind]
  if (limit !== undefined) counters.bounds.reached(limit, agentId, requestId)
}

/** Failures to connect: the same for every agent. */
const connectFailures: ReadonlySet<FailureKind> = new Set(['refused', 'unreachable', 'tls', 'connect_timeout', 'reset'])

/**
 * The outcome of a failed request for the circuit: neutral if the gateway itself was short of something.
 *
 * @param started it was about to be sent, so there was a connection
 * @param isFirstOnly others may connect to further addresses of the host
 */
export function outcomeOfError(error: Error, started: boolean, isFirstOnly = false): CircuitOutcome {
  const kind = failureKind(error)
  if (ownLimits[kind] !== undefined || slowAnswers.has(kind) || error instanceof StaleConnectionError) return 'neutral'
  const isForAll = !started && !isFirstOnly && connectFailures.has(kind)
  return isForAll ? 'unreachable' : 'failure'
}

/** The cause of a failure as the agent sees it, where it may see it. */
const texts: { readonly [kind in FailureKind]?: string } = {
  refused: 'The upstream refused the connection.',
  reset: 'The upstream closed the connection before its answer was whole.',
  unreachable: 'There is no route to the upstream.',
  tls: 'TLS with the upstream failed: the handshake broke off, or its certificate is not trusted.',
  malformed: 'The answer of the upstream is not valid HTTP.',
  name_not_found: 'The host name of the upstream was not found.',
  name_timeout: 'The host name of the upstream could not be looked up in time.',
  connect_timeout: 'The upstream did not accept the connection in time.',
  headers_timeout: 'The upstream did not begin to answer in time.',
  body_timeout: 'The answer of the upstream stood still for too long.',
}

const timeouts: ReadonlySet<FailureKind> = new Set([
  'name_timeout',
  'connect_timeout',
  'headers_timeout',
  'body_timeout',
])

/**
 * The refusal for a failed upstream request. The caller learns the kind of a failure only if the destination is public:
 * for private ones it would map the network for the agent.
 *
 * @param isPublic of the destination
 */
export function refuseFailure(kind: FailureKind, isPublic: boolean): Refusal {
  if (ownLimits[kind] !== undefined) {
    return refuse(kind === 'busy' ? 'upstream_busy' : 'busy', undefined, { failure: kind })
  }
  const code = timeouts.has(kind) ? 'upstream_timeout' : 'upstream_failed'
  return isPublic
    ? refuse(code, texts[kind], { failure: kind, members: { failure: kind } })
    : refuse(code, undefined, { failure: kind })
}

export function isPublicDestination({ addresses }: { readonly addresses: readonly string[] }): boolean {
  return addresses.every(address => classifyAddress(address) === 'public')
}

/** Top-level names that no public zone has (RFC 6761, RFC 6762, ICANN's reservation of internal). */
const innerZones = /^(?:local|localhost|internal|invalid|test|example|onion|arpa|lan|home|corp|intranet)$/

/** Whether a name that has no address could only have had a public one, by what it looks like. */
export function isPublicName(host: string): boolean {
  const last = host.lastIndexOf('.')
  return last >= 0 && !innerZones.test(host.slice(last + 1))
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** RFC 9110 section 9.2.2. TRACE is idempotent too, but never forwarded. */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/**
 * Whether a failed request may be sent once more: always when it was not sent yet; after that only if it is idempotent
 * and its body is still there.
 *
 * @param started the first bytes were about to be written
 */
export function maySendAgain(error: Error, { method, body }: UpstreamRequest, started: boolean): boolean {
  if (!(error instanceof StaleConnectionError || error instanceof RefusedStreamError)) return false
  return !started || (idempotent.has(method) && (body === null || Buffer.isBuffer(body)))
}
