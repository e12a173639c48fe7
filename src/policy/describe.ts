import { classOf } from './address.ts'
import type { Activity, AgentFacts, Destination, RequestBody, RequestHead } from './input.ts'
import { isRecord } from './path.ts'

/** A request as a person describes it: the explain operation, policy test files. */
export interface RequestDescription {
  readonly request: {
    readonly method?: string
    readonly url: string
    readonly headers?: Readonly<Record<string, string | readonly string[]>>
    /** Text is sent as it is, anything else as JSON. */
    readonly body?: unknown
    readonly destinationIp?: string
    readonly clientIp?: string
    /** Bytes of the body that may be held. */
    readonly bodyLimit?: number
    readonly risk?: number
  }
  /** Facts and counters of the agent; what is left out is unremarkable. */
  readonly agent?: Readonly<Partial<AgentFacts & Omit<Activity, 'hostSeen'> & { hostSeen: boolean; ageHours: number }>>
  /** ISO 8601. */
  readonly time?: string
  /** Takes the place of the computed risk score. */
  readonly risk?: number
  /** head: decide without the body. */
  readonly phase?: 'head' | 'body'
  readonly riskThreshold?: number
}

export interface DescribedRequest {
  readonly head: RequestHead
  readonly body: RequestBody
}

/**
 * The request that a description means. Other than the road of real requests it repairs the URL: dot segments are
 * resolved and a trailing dot of the host dropped. A string is what is wrong.
 *
 * @param now taken when the description has no time, milliseconds since the epoch
 */
export function requestFromDescription(description: RequestDescription, now: number): DescribedRequest | string {
  const { request, agent = {} } = description
  const url = URL.parse(request.url)
  if (url === null || !/^https?:$/.test(url.protocol)) return 'url is an absolute http or https address'
  const time = description.time === undefined ? now : Date.parse(description.time)
  if (!Number.isFinite(time)) return 'time is an ISO 8601 time'
  const bytes = bodyBytes(request.body)
  const limit = request.bodyLimit ?? bytes.length
  const host = url.hostname.replace(/\.$/, '')
  const target = targetOf(url, host, request.url)
  return {
    head: {
      ...target,
      method: (request.method ?? 'GET').toUpperCase(),
      rawHeaders: rawHeaders(request.headers ?? {}, request.body),
      contentLength: bytes.length,
      clientIp: request.clientIp ?? '127.0.0.1',
      destination: destinationOf(request.destinationIp ?? literalAddress(host)),
      agent: agentFacts(agent, time),
      activity: activityOf(agent),
      now: time,
    },
    body: { bytes: bytes.subarray(0, limit), complete: bytes.length <= limit },
  }
}

function bodyBytes(body: unknown): Uint8Array {
  if (body === undefined || body === null) return new Uint8Array(0)
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
}

type Target = Pick<RequestHead, 'url' | 'scheme' | 'host' | 'port' | 'path' | 'rawPath' | 'queryString'>

function targetOf(url: URL, host: string, given: string): Target {
  const scheme = url.protocol.slice(0, -1)
  const port = url.port === '' ? '' : `:${url.port}`
  return {
    url: `${scheme}://${host}${port}${url.pathname}${url.search}`,
    scheme,
    host,
    port: url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port),
    path: url.pathname,
    rawPath: /^[^:]+:\/\/[^/?#]*([^?#]*)/.exec(given)?.[1] || '/',
    queryString: url.search.slice(1),
  }
}

function rawHeaders(headers: Readonly<Record<string, string | readonly string[]>>, body: unknown): string[] {
  const fields = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap(line => [name, String(line)]),
  )
  const named = Object.keys(headers).some(name => name.toLowerCase() === 'content-type')
  const isJson = isRecord(body) || Array.isArray(body)
  return isJson && !named ? [...fields, 'content-type', 'application/json'] : fields
}

function literalAddress(host: string): string | undefined {
  if (host.startsWith('[')) return host.slice(1, -1)
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(host) ? host : undefined
}

function destinationOf(ip: string | undefined): Destination | undefined {
  return ip === undefined ? undefined : { ip, class: classOf(ip) }
}

const millisecondsPerHour = 3_600_000

function agentFacts(agent: NonNullable<RequestDescription['agent']>, now: number): AgentFacts {
  return {
    id: agent.id ?? '00000000-0000-4000-8000-000000000000',
    name: agent.name ?? 'agent',
    ownerId: agent.ownerId ?? 'owner',
    status: agent.status ?? 'Active',
    policyName: agent.policyName ?? null,
    createdAt: agent.createdAt ?? now - (agent.ageHours ?? 0) * millisecondsPerHour,
    tags: agent.tags ?? {},
    claims: agent.claims ?? {},
    trustScore: agent.trustScore ?? 0.5,
  }
}

function activityOf(agent: NonNullable<RequestDescription['agent']>): Activity {
  const seen = agent.hostSeen ?? true
  return {
    requestsLastMinute: agent.requestsLastMinute ?? 0,
    deniedLast10m: agent.deniedLast10m ?? 0,
    hitlLast24h: agent.hitlLast24h ?? 0,
    humanDeniedLast24h: agent.humanDeniedLast24h ?? 0,
    bytesToday: agent.bytesToday ?? 0,
    medianBytesPerDay: agent.medianBytesPerDay ?? 0,
    usualBodyBytes: agent.usualBodyBytes ?? 0,
    hostSeen: () => seen,
  }
}
