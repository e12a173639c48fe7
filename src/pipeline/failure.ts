import { canonicalAddress, classifyAddress } from '../base/address.ts'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { BoundName, FailureKind } from '../telemetry/layout.ts'
import { failures } from '../telemetry/layout.ts'
import { StaleConnectionError, UpstreamError } from '../upstream/handler.ts'
import type { Resolution } from '../upstream/resolve.ts'
import { UpstreamBusyError } from '../upstream/waiting-line.ts'
import type { Parts } from './parts.ts'

/** Errors of the system by their code, as far as it tells more than that something failed. */
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

/** Limit of the gateway itself that made an upstream request fail; undefined when the upstream failed. */
export function ownLimit(error: Error): BoundName | undefined {
  return ownLimits[failureKind(error)]
}

/** The upstream is there, and slow: a model may think for longer than one agent waits. */
const slowAnswers: ReadonlySet<FailureKind> = new Set(['headers_timeout', 'body_timeout'])

/** Counts a failed upstream request, and tells of the limit of the gateway that it met. */
export function noteFailure(
  error: Error,
  { agentId, requestId }: { readonly agentId?: string | undefined; readonly requestId?: string | undefined },
  { metrics, bounds }: Pick<Parts, 'metrics' | 'bounds'>,
): void {
  metrics?.count(failures, failureKind(error))
  const limit = ownLimit(error)
  if (limit !== undefined) bounds.reached(limit, agentId, requestId)
}

/** Failures to connect: the same for every agent. */
const connectFailures: ReadonlySet<FailureKind> = new Set(['refused', 'unreachable', 'tls', 'connect_timeout', 'reset'])

/**
 * What a failed upstream request says about the upstream: nothing when the gateway itself was short of something.
 *
 * @param started it was about to be sent, so there was a connection
 */
export function outcomeOfError(error: Error, started: boolean): Outcome {
  if (ownLimit(error) !== undefined || error instanceof StaleConnectionError) return 'neutral'
  if (slowAnswers.has(failureKind(error))) return 'neutral'
  return !started && connectFailures.has(failureKind(error)) ? 'unreachable' : 'failure'
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
 * The refusal for a failed upstream request. The kind of failure is told where the destination is public alone: of
 * private ones it would map the network for the agent.
 *
 * @param isPublic of the destination
 */
export function refusalOf(error: Error, isPublic: boolean): Refusal {
  const kind = failureKind(error)
  if (ownLimits[kind] !== undefined) {
    return refuse(kind === 'busy' ? 'upstream_busy' : 'busy', undefined, { headers: ['Retry-After', '1'] })
  }
  return refuseFailure(kind, isPublic)
}

export function refuseFailure(kind: FailureKind, isPublic: boolean): Refusal {
  const code = timeouts.has(kind) ? 'upstream_timeout' : 'upstream_failed'
  return isPublic ? refuse(code, texts[kind], { members: { failure: kind } }) : refuse(code)
}

/** A name without an address. */
export function nameFailure(failed: 'notFound' | 'timedOut'): FailureKind {
  return failed === 'notFound' ? 'name_not_found' : 'name_timeout'
}

/** Whether all addresses of the destination are public. */
export function isPublicDestination(resolution: Pick<Resolution, 'addresses'> | undefined): boolean {
  if (resolution === undefined) return false
  return resolution.addresses.every(address => classifyAddress(canonicalAddress(address) ?? address) === 'public')
}

/** Top-level names that no public zone has (RFC 6761, RFC 6762, ICANN's reservation of internal). */
const innerZones: ReadonlySet<string> = new Set([
  ...[
    'local',
    'localhost',
    'internal',
    'invalid',
    'test',
    'example',
    'onion',
    'arpa',
    'lan',
    'home',
    'corp',
    'intranet',
  ],
])

/** Whether a name that has no address could only have had a public one, by what it looks like. */
export function isPublicName(host: string): boolean {
  const labels = host.split('.')
  return labels.length > 1 && !innerZones.has(labels.at(-1) as string)
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
