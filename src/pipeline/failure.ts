import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { BoundName, FailureKind } from '../telemetry/layout.ts'
import { StaleConnectionError, UpstreamError } from '../upstream/handler.ts'
import { UpstreamBusyError } from '../upstream/waiting-line.ts'

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

const timeouts: ReadonlySet<FailureKind> = new Set(['headers_timeout', 'body_timeout', 'connect_timeout'])

/** Limit of the gateway itself that made an upstream request fail; undefined when the upstream failed. */
export function ownLimit(error: Error): BoundName | undefined {
  return ownLimits[failureKind(error)]
}

/** The upstream is there, and slow: a model may think for longer than one agent waits. */
const slowAnswers: ReadonlySet<FailureKind> = new Set(['headers_timeout', 'body_timeout'])

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

/** What the agent may know of a failure: which side, and whether it was time. The cause is for the log alone. */
export function refusalOf(error: Error): Refusal {
  const kind = failureKind(error)
  if (ownLimits[kind] !== undefined) {
    return refuse(kind === 'busy' ? 'upstream_busy' : 'busy', undefined, { headers: ['Retry-After', '1'] })
  }
  return refuse(timeouts.has(kind) ? 'upstream_timeout' : 'upstream_failed')
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
