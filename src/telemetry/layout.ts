import { failureKinds } from '../base/failure-kinds.ts'
import { refusalKinds } from '../base/refusal-kinds.ts'
import type { Effect } from '../policy/language/model.ts'
import {
  byOrigin,
  cellCount,
  counter,
  type Family,
  family,
  gauge,
  type Histogram,
  histogram,
  withExemplars,
} from './family.ts'

/** Ends of proxied requests, beside the codes of refusals. */
const endings = ['forwarded', 'answered', 'suspended', 'aborted', 'broken'] as const
/** Effects as values of a label. */
export const effectLabels: Readonly<Record<Effect, string>> = { Allow: 'allow', Deny: 'deny', Hitl: 'hitl' }
const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const
/** Held requests wait for people, and streams, WebSockets and tunnels last as long as their ends like: kept apart. */
const requestKinds = ['plain', 'stream', 'held', 'websocket', 'tunnel'] as const
export type RequestKind = (typeof requestKinds)[number]

const durations = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
]
const overheads = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]
const decisionTimes = [0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.01, 0.1, 1]
const waits = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]
const storeTimes = [0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15]
const reviewTimes = [1, 5, 15, 30, 60, 120, 300, 900, 1_800, 3_600, 14_400, 86_400]
const collections = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]

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
  // Requests that a connection of HTTP/2 cancels beyond those that it lets end.
  'stream_resets',
  // Open tunnels of one agent: ForwardProxy:MaxTunnelsPerAgent.
  'tunnels',
  // WebSockets: Proxy:UpgradeIdleSeconds, UpgradeMaxSeconds, UpgradeMaxBytes.
  'upgrade_idle',
  'upgrade_time',
  'upgrade_bytes',
  // Shapes and samples of requests that were not recorded or made way: the bounds of Recording, and what waits to be read.
  'shapes',
  'samples',
  // The system gave no file descriptor, no memory or no local port for a connection.
  'descriptors',
  'memory',
  'ports',
] as const

export type BoundName = (typeof boundNames)[number]

export const requests = family(
  'requests_total',
  'Proxied requests that are over, by outcome: how they ended, or the code of the refusal.',
  'outcome',
  [...endings, ...Object.keys(refusalKinds)],
)
export const decisions = family('decisions_total', 'Decisions, by their effect.', 'effect', Object.values(effectLabels))
export const answers = byOrigin(family('upstream_responses_total', 'Answers of upstreams.', 'class', statusClasses))
export const failures = byOrigin(
  family('upstream_failures_total', 'Upstream requests that failed.', 'kind', failureKinds),
)
export const retries = counter(
  'upstream_retries_total',
  'Requests that were sent once more, because a kept connection broke or a stream was refused.',
)
export const bounds = family('limits_reached_total', 'Limits that were reached, by limit.', 'limit', boundNames)
export const traceSpans = family('trace_spans_total', 'Spans, by what became of them.', 'result', [
  'exported',
  'failed',
  'dropped',
])
export const quarantines = family('quarantines_total', 'Agents that the gateway quarantined, by cause.', 'cause', [
  'trust',
  'denials',
])
export const tokens = family('token_checks_total', 'Tokens of agents, known from before or not.', 'cache', [
  'hit',
  'miss',
])
/** Attempts to get a value for a credential. */
export const credentialRenewals = family(
  'credential_renewals_total',
  'Attempts to get the value of a credential, by how they ended.',
  'outcome',
  ['renewed', 'failing', 'needed'],
)
export const credentialEchoes = counter(
  'credential_echoes_total',
  'Header fields of answers from which the value of a credential was removed.',
)
export const requestBytes = counter('upstream_request_body_bytes_total', 'Body bytes sent to upstreams.')
export const responseBytes = counter('upstream_response_body_bytes_total', 'Body bytes of answers of upstreams.')
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
export const budgetLeaseWaits = counter(
  'budget_lease_waits_total',
  'Waits of calls until the store had leased a part of a budget.',
)
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
export const loopDelay = gauge(
  'nodejs_eventloop_delay_p99_seconds',
  'Delay of the event loop, the worst thread.',
  'max',
)
export const loopDelayMax = gauge('nodejs_eventloop_delay_max_seconds', 'The same, the longest delay.', 'max')
export const upstreamWaiting = gauge('upstream_waiting', 'Requests that wait for a connection to their upstream.')
export const managementRequests = family(
  'management_requests_total',
  'Calls of the API, by the class of their status.',
  'class',
  statusClasses,
)
export const logins = family('logins_total', 'Requests for tokens (POST /tokens).', 'result', [
  'succeeded',
  'failed',
  'limited',
])
export const verdicts = family('hitl_verdicts_total', 'Held requests that were decided here.', 'verdict', [
  'approved',
  'denied',
  'withdrawn',
])
export const replays = family('hitl_replays_total', 'Approved requests that were sent, or could not be.', 'result', [
  'answered',
  'failed',
  'not_sent',
])
export const webhookDeliveries = family(
  'webhook_deliveries_total',
  'Attempts to send a message to a webhook.',
  'result',
  ['accepted', 'rejected', 'failed'],
)
export const storeErrors = family('store_errors_total', 'Operations of the store that failed.', 'kind', [
  'unavailable',
  'in_doubt',
  'fault',
])
export const duration = withExemplars(
  histogram(
    'request_duration_seconds',
    'From the head of a proxied request to the last byte of its answer.',
    durations,
    ['kind', ...requestKinds],
  ),
)
export const overhead = withExemplars(
  histogram(
    'overhead_seconds',
    'From the head of a proxied request until it was handed to its upstream, without waits for its body or for people.',
    overheads,
  ),
)
export const decisionDuration = histogram('decision_duration_seconds', 'Time of the decision itself.', decisionTimes)
export const firstByte = byOrigin(
  histogram(
    'upstream_first_byte_seconds',
    'From the hand-over of a request to its upstream until the head of the answer.',
    durations,
  ),
)
export const connectTime = histogram('upstream_connect_seconds', 'Time to open a connection, with its TLS.', waits)
export const reviewTime = histogram(
  'hitl_wait_seconds',
  'Time that a request was held before its verdict.',
  reviewTimes,
)
export const storeTime = histogram('store_duration_seconds', 'Time of operations of the store.', storeTimes, [
  'operation',
  'read',
  'write',
])
export const gcTime = histogram('nodejs_gc_duration_seconds', 'Pauses for garbage collection.', collections, [
  'kind',
  'minor',
  'major',
  'incremental',
  'weakcb',
])

/** In the order in which they are shown. */
export const families: readonly Family[] = [
  requests,
  decisions,
  answers,
  failures,
  bounds,
  quarantines,
  traceSpans,
  tokens,
  retries,
  credentialRenewals,
  credentialEchoes,
  requestBytes,
  responseBytes,
  llmTokens,
  llmUsage,
  llmCost,
  llmUnpriced,
  budgetLeaseWaits,
  clientConnections,
  upstreamConnections,
  upstreamWaiting,
  webSockets,
  openTunnels,
  refusedTunnels,
  mintedLeafs,
  handshakes,
  managementRequests,
  logins,
  verdicts,
  replays,
  webhookDeliveries,
  storeErrors,
  loopDelay,
  loopDelayMax,
]
export const histograms: readonly Histogram[] = [
  duration,
  overhead,
  decisionDuration,
  firstByte,
  connectTime,
  reviewTime,
  storeTime,
  gcTime,
]

/** Numbers of one thread. */
export const blockLength = cellCount()
