/**
 * An upstream's answer on the management origin. The agent that caused it is not trusted, and its reader holds a reviewer's
 * token: nothing in it may direct a client, a browser or a proxy in front of the gateway.
 */
import { fieldName } from './names.ts'

/** Header fields that direct their reader, as `foldName` writes them. */
const steering: ReadonlySet<string> = new Set([
  // Redirects and repeats.
  ...['location', 'content-location', 'refresh', 'retry-after', 'uri', 'alternates', 'link', 'alt-svc', 'alt-used'],
  ...['x-redirect', 'x-pjax-url', 'x-inertia-location', 'x-amz-website-redirect-location', 'turbo-location'],
  // Credentials and stored data.
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'www-authenticate', 'proxy-authenticate', 'authentication-info'],
  ...['proxy-authentication-info', 'optional-www-authenticate', 'dpop-nonce', 'set-login', 'p3p'],
  // Settings that last for the origin.
  ...['strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'expect-ct', 'expect-staple'],
  ...['report-to', 'reporting-endpoints', 'nel', 'accept-ch', 'critical-ch', 'accept-ch-lifetime', 'origin-trial'],
  ...['origin-agent-cluster', 'origin-isolation', 'service-worker-allowed', 'x-dns-prefetch-control', 'delegate-ch'],
  // How the answer is loaded, shown or run.
  ...['content-security-policy', 'content-security-policy-report-only', 'x-content-security-policy', 'x-webkit-csp'],
  ...['permissions-policy', 'feature-policy', 'document-policy', 'referrer-policy', 'integrity-policy'],
  ...['x-content-type-options', 'x-frame-options', 'x-xss-protection', 'x-ua-compatible', 'x-download-options'],
  ...['x-permitted-cross-domain-policies', 'timing-allow-origin', 'content-disposition', 'sourcemap', 'x-sourcemap'],
  ...['speculation-rules', 'supports-loading-mode', 'use-as-dictionary', 'no-vary-search', 'activate-storage-access'],
  // Instructions to proxies in front of the gateway: caching, other files or addresses.
  ...['cache-control', 'pragma', 'expires', 'surrogate-control', 'surrogate-key', 'edge-control', 'cache-tag'],
  ...['x-sendfile', 'x-lighttpd-send-file', 'x-lighttpd-send-tempfile', 'x-reproxy-url', 'x-reproxy-file'],
])

/** Prefixes of such fields. */
const steeringPrefixes = [
  ...['access-control-', 'cross-origin-', 'x-accel-', 'x-litespeed-', 'hx-', 'x-up-', 'attribution-reporting-'],
  ...['ad-auction-', 'sec-', 'secure-session-', 'permissions-policy-', 'document-policy-', 'integrity-policy-'],
]
const steeringSuffixes = ['-cache-control']

/**
 * Statuses about the connection. Clients repeat the request by themselves (408, 421, 425), or attribute the answer to their
 * proxy (407).
 */
const ofTheConnection: ReadonlySet<number> = new Set([407, 408, 421, 425])

/** Prefix of the name of a field that is passed on under another name. */
const upstreamPrefix = 'Gateway-Upstream-'

export interface AnswerHead {
  readonly status: number
  /** Flat: name, value, name, value. */
  readonly rawHeaders: readonly string[]
}

/**
 * The same answer without steering fields: they are renamed `Gateway-Upstream-<Name>`, a status of the connection becomes
 * 502 with `Gateway-Upstream-Status`, and a browser neither runs, sniffs nor keeps the body.
 */
export function inertHead({ status, rawHeaders }: AnswerHead): AnswerHead {
  const isStatusKept = !ofTheConnection.has(status)
  const headers = ['Cache-Control', 'no-store', 'Content-Security-Policy', 'sandbox']
  headers.push('X-Content-Type-Options', 'nosniff')
  if (!isStatusKept) headers.push(`${upstreamPrefix}Status`, String(status))
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    headers.push(isSteering(fieldName(name).folded) ? upstreamPrefix + name : name, rawHeaders[index + 1]!)
  }
  return { status: isStatusKept ? status : 502, rawHeaders: headers }
}

function isSteering(folded: string): boolean {
  if (steering.has(folded)) return true
  return steeringPrefixes.some(start => folded.startsWith(start)) || steeringSuffixes.some(end => folded.endsWith(end))
}
