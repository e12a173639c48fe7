import type { Activity } from '../../base/activity.ts'
import { canonicalAddress, literalAddress } from '../../base/address.ts'
import { parseTarget, type Target } from '../../base/target.ts'
import { isRecord } from '../values/path.ts'
import { destinationOf } from './facts.ts'
import type { AgentFacts, BudgetFacts, RequestBody, RequestHead, SpendFacts } from './input.ts'
import { readMcpHeads } from './mcp-heads.ts'

type SpentOfAgent = Record<Exclude<keyof SpendFacts, 'budgets'>, number>

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
    readonly bodyLimit?: number
    readonly risk?: number
    /** `llm.costAtMost`; absent: not known for a POST, and there is none for other requests. */
    readonly maxCost?: number
  }
  /** Facts and counters of the agent; omitted ones have ordinary values. */
  readonly agent?: Readonly<
    Partial<AgentFacts & Omit<Activity, 'hostSeen'> & { hostSeen: boolean; ageHours: number } & SpentOfAgent>
  >
  /** What is spent of budgets, by name. */
  readonly budgets?: Readonly<Record<string, Partial<BudgetFacts>>>
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

/** Why a description is not a request that the gateway would take. */
export interface DescriptionProblem {
  /** target: `/proxy/` refuses this URL too. */
  readonly part: 'target' | 'time'
  readonly problem: string
}

/**
 * The request that a description means. The URL is parsed as on the data plane, so that both refuse the same.
 *
 * @param now taken when the description has no time, milliseconds since the epoch
 */
export function requestFromDescription(
  description: RequestDescription,
  now: number,
): DescribedRequest | DescriptionProblem {
  const { request, agent = {} } = description
  const target = parseTarget(request.url)
  if (typeof target === 'string') return { part: 'target', problem: target }
  const time = description.time === undefined ? now : Date.parse(description.time)
  if (!Number.isFinite(time)) return { part: 'time', problem: 'time must be an ISO 8601 time' }
  const bytes = bodyBytes(request.body)
  const limit = request.bodyLimit ?? bytes.length
  const ip = request.destinationIp ?? literalAddress(target.origin.host)
  const clientIp = request.clientIp ?? '127.0.0.1'
  const method = (request.method ?? 'GET').toUpperCase()
  const fields = rawHeaders(request.headers ?? {}, request.body)
  return {
    head: {
      ...headOf(target),
      method,
      rawHeaders: fields,
      mcp: readMcpHeads({ method, hasBody: bytes.length > 0, rawHeaders: fields }),
      contentLength: bytes.length,
      clientIp: canonicalAddress(clientIp) ?? clientIp,
      destination: ip === undefined ? undefined : destinationOf(ip),
      agent: agentFacts(agent, time),
      activity: activityOf(agent),
      spend: spendOf(description),
      maxCost: () => request.maxCost ?? (method === 'POST' ? undefined : 'none'),
      now: time,
    },
    body: { bytes: bytes.subarray(0, limit), complete: bytes.length <= limit },
  }
}

/** The members of the head that come from the target. */
function headOf({ origin, path, readings, query = '', url }: Target) {
  const { scheme, host, port } = origin
  return { url, origin: origin.key, scheme, host, port, path, readings, rawPath: path, queryString: query }
}

function bodyBytes(body: unknown): Uint8Array {
  if (body === undefined || body === null) return new Uint8Array(0)
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
}

function rawHeaders(headers: Readonly<Record<string, string | readonly string[]>>, body: unknown): string[] {
  const fields = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap(line => [name, String(line)]),
  )
  const named = Object.keys(headers).some(name => name.toLowerCase() === 'content-type')
  const isJson = isRecord(body) || Array.isArray(body)
  return isJson && !named ? [...fields, 'content-type', 'application/json'] : fields
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
  const knowsHost = agent.hostSeen ?? true
  return {
    requestsLastMinute: agent.requestsLastMinute ?? 0,
    deniedLast10m: agent.deniedLast10m ?? 0,
    hitlLast24h: agent.hitlLast24h ?? 0,
    humanDeniedLast24h: agent.humanDeniedLast24h ?? 0,
    toolChangesLast24h: agent.toolChangesLast24h ?? 0,
    bytesToday: agent.bytesToday ?? 0,
    medianBytesPerDay: agent.medianBytesPerDay ?? 0,
    usualBodyBytes: agent.usualBodyBytes ?? 0,
    hostSeen: () => knowsHost,
  }
}

function spendOf({ agent = {}, budgets = {} }: RequestDescription): SpendFacts {
  return {
    spendToday: agent.spendToday ?? 0,
    spendThisMonth: agent.spendThisMonth ?? 0,
    tokensToday: agent.tokensToday ?? 0,
    budgets: new Map(Object.entries(budgets).map(([name, { used, remaining }]) => [name, { used, remaining }])),
  }
}
