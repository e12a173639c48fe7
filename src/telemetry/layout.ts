import { failureKinds } from '../base/failure-kinds.ts'
import { refusalKinds } from '../base/refusals.ts'

/**
 * The metrics and their cells in memory. The values of every label are a closed set: nothing that a caller chooses, such as
 * an agent or host, becomes a label, so that callers cannot make the page grow. Each thread writes a block of cells of its
 * own, and the thread that shows them adds the blocks up.
 */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** Undefined for a single number. */
  readonly label: string | undefined
  /** Cell of each value of the label. */
  readonly cells: ReadonlyMap<string, number>
  /** How the numbers of several threads are combined. */
  readonly merge: 'sum' | 'max'
}

export interface Histogram {
  readonly name: string
  readonly help: string
  /** Upper bounds of the buckets, seconds, ascending; one more bucket takes what is above. */
  readonly bounds: readonly number[]
  /** Cell of the first bucket; the sum follows the last one. */
  readonly first: number
}

/** Ends of proxied requests, beside the codes of refusals. */
const endings = ['forwarded', 'answered', 'suspended', 'aborted', 'broken'] as const
const effects = ['Allow', 'Deny', 'Hitl'] as const
const statusClasses = ['2xx', '3xx', '4xx', '5xx'] as const
const durations = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const overheads = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]

/** Limits that callers can reach. */
const boundNames = [
  // More requests in a minute than System:RateLimit allows.
  'agent_rate',
  'management_rate',
  // More requests under way at once than System:RateLimit:MaxInFlight.
  'agent_requests',
  // More requests waiting for a connection to one origin than Proxy:MaxWaiting.
  'origin_waiting',
  // A body that comes more slowly than System:Server:MinBodyBytesPerSecond.
  'body_pace',
  // An answer of which the client takes nothing for System:Server:IdleTimeoutSeconds.
  'answer_stalled',
  // Bytes of bodies that are held to decide on: a quarter of Proxy:MaxHeldBytes for one agent, and all of it.
  'agent_held_bytes',
  'held_bytes',
  // Names that one agent, or all together, look up at once.
  'lookups',
  // Failed logins from one address, or logins that wait for a hash (Security:AgentAuth:TokenRequests).
  'logins',
  // Connections of clients: System:Server:MaxConnections, MaxConnectionsPerAddress.
  'connections',
  'address_connections',
  // Requests that wait for review: HumanInTheLoop:MaxPendingRequests, and the share of one agent in it.
  'hitl_queue',
  'agent_hitl_queue',
  // Bytes stored of requests that were held for review: HumanInTheLoop:MaxStoredBytes, and the share of one agent in it.
  'hitl_bytes',
  'agent_hitl_bytes',
  // Messages of an agent that were dropped because more than 10,000 wait for a webhook.
  'webhook_messages',
  // Open tunnels of one agent: ForwardProxy:MaxTunnelsPerAgent.
  'tunnels',
  // WebSockets: Proxy:UpgradeIdleSeconds, UpgradeMaxSeconds, UpgradeMaxBytes.
  'upgrade_idle',
  'upgrade_time',
  'upgrade_bytes',
  // The system gave no file descriptor, no memory or no local port for a connection.
  'descriptors',
  'memory',
  'ports',
] as const

export type BoundName = (typeof boundNames)[number]

let next = 0
const alone = ''

function family(name: string, help: string, label: string, values: readonly string[]): Family {
  const cells = new Map(values.map(value => [value, next++]))
  return { name: `agent_gateway_${name}`, help, type: 'counter', label: label || undefined, cells, merge: 'sum' }
}

const counter = (name: string, help: string): Family => family(name, help, alone, [alone])
const gauge = (name: string, help: string, merge: Family['merge'] = 'sum'): Family => ({
  ...counter(name, help),
  type: 'gauge',
  merge,
})

function histogram(name: string, help: string, bounds: readonly number[]): Histogram {
  const first = next
  next += bounds.length + 2
  return { name: `agent_gateway_${name}`, help, bounds, first }
}

export const requests = family(
  'requests_total',
  'Proxied requests that are over, by outcome: how they ended, or the code of the refusal.',
  'outcome',
  [...endings, ...Object.keys(refusalKinds)],
)
export const decisions = family('decisions_total', 'Decisions, by their effect.', 'effect', effects)
export const answers = family('upstream_responses_total', 'Answers of upstreams.', 'class', statusClasses)
export const failures = family('upstream_failures_total', 'Upstream requests that failed.', 'kind', failureKinds)
export const retries = counter(
  'upstream_retries_total',
  'Requests that were sent once more, because a kept connection broke or a stream was refused.',
)
export const bounds = family('bounds_total', 'Limits that were reached, by limit.', 'bound', boundNames)
export const quarantines = family('quarantines_total', 'Agents that the gateway quarantined, by cause.', 'cause', [
  'trust',
  'denials',
])
export const tokens = family('token_checks_total', 'Tokens of agents, known from before or not.', 'cache', [
  'hit',
  'miss',
])
export const requestBytes = counter('request_body_bytes_total', 'Body bytes sent to upstreams.')
export const responseBytes = counter('response_body_bytes_total', 'Body bytes of answers of upstreams.')
export const llmTokens = family(
  'llm_tokens_total',
  'Tokens of calls of models, as their answers told; each in one type.',
  'type',
  ['input', 'output', 'cache_read', 'cache_write'],
)
export const llmUsage = family(
  'llm_usage_total',
  'Successful calls of models, by what their answers told of their tokens.',
  'how',
  ['read', 'partial', 'missing'],
)
export const llmCost = counter('llm_cost_total', 'Cost of calls of models, in USD times Metering:ExchangeRate.')
export const llmUnpriced = counter('llm_unpriced_total', 'Calls of models that told their tokens, and have no price.')
export const clientConnections = gauge('client_connections', 'Open connections of clients.')
export const upstreamConnections = gauge('upstream_connections', 'Open connections to upstreams.')
export const webSockets = gauge('websockets', 'Open WebSockets.')
export const openTunnels: Family = {
  ...family(
    'tunnels',
    'Open tunnels of the forward proxy, by whether the gateway reads the requests in them.',
    'road',
    ['intercepted', 'tunnel'],
  ),
  type: 'gauge',
}
export const refusedTunnels = family(
  'tunnel_refused_total',
  'Tunnels that were not opened, by the code of the refusal.',
  'reason',
  Object.keys(refusalKinds),
)
export const mintedLeafs = counter('leafs_minted_total', 'Certificates that were made for hosts of tunnels.')
export const handshakes = family(
  'client_tls_handshakes_total',
  'TLS handshakes of clients in tunnels, new or resumed.',
  'session',
  ['new', 'resumed'],
)
export const loopDelay = gauge('event_loop_delay_p99_seconds', 'Delay of the event loop, the worst thread.', 'max')
export const loopDelayMax = gauge('event_loop_delay_max_seconds', 'The same, the longest delay.', 'max')
export const duration = histogram(
  'request_duration_seconds',
  'From the head of a proxied request to the last byte of its answer.',
  durations,
)
export const overhead = histogram(
  'overhead_seconds',
  'From the head of a proxied request until it was handed to its upstream.',
  overheads,
)

/** In the order in which they are shown. */
export const families: readonly Family[] = [
  requests,
  decisions,
  answers,
  failures,
  bounds,
  quarantines,
  tokens,
  retries,
  requestBytes,
  responseBytes,
  llmTokens,
  llmUsage,
  llmCost,
  llmUnpriced,
  clientConnections,
  upstreamConnections,
  webSockets,
  openTunnels,
  refusedTunnels,
  mintedLeafs,
  handshakes,
  loopDelay,
  loopDelayMax,
]
export const histograms: readonly Histogram[] = [duration, overhead]

/** Numbers of one thread. */
export const blockLength = next
