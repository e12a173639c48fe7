/** Numbers of the gateway that are read for each scrape rather than counted. */
import type { TrailVerification } from '../audit/verification.ts'
import type { Budgets } from '../budgets/budgets.ts'
import type { BudgetView } from '../budgets/view.ts'
import { maxHeldBytes } from '../config/check.ts'
import { credentialStates, stateOf } from '../credentials/view.ts'
import { type MessageQueue, queuesOf } from '../hitl/receiver.ts'
import { shareFor } from '../runtime/shared-answer.ts'
import { type ExpositionFormat, exposition, type MetricSample } from '../telemetry/exposition.ts'
import { createProcessReadings } from '../telemetry/process.ts'
import type { ThreadPool } from '../threads/pool.ts'
import type { Base } from './base.ts'
import type { Listening } from './listening.ts'
import type { Reload } from './reload.ts'
import type { SharedLimits } from './shared.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface ReadingParts extends Pick<Base, 'config' | 'clock' | 'logStatus' | 'store' | 'fleet'> {
  readonly limits: SharedLimits
  readonly telemetry: Pick<Telemetry, 'totals'>
  readonly verification: Pick<TrailVerification, 'state'>
  readonly budgets: Pick<Budgets, 'all'>
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
  /** Parts that are made after this one. */
  readonly live: () => {
    readonly reload: Pick<Reload, 'last'>
    readonly listening: Pick<Listening, 'expiresAt'>
    readonly pool: Pick<ThreadPool, 'replaced'> | undefined
  }
}

/** All metrics, as text for a scraper. */
export function createPage(parts: ReadingParts): (format: ExpositionFormat) => Promise<string> {
  const processReadings = createProcessReadings(parts.clock)
  const started = parts.clock.now()
  const { Origins } = parts.config.Telemetry.Metrics
  const ofStore = shareFor(freshMs, parts.clock, () => storeReadings(parts))
  return async format => {
    const stored = await ofStore()
    const states = [...stateReadings(parts, started), ...limitReadings(parts), ...credentialReadings(parts)]
    const readings = [...states, ...parts.fleet.readings(), ...stored]
    return exposition(parts.telemetry.totals(), [...readings, ...processReadings()], format, Origins)
  }
}

/** Anybody may ask with Telemetry:Metrics:Public: what the store said holds for so long, milliseconds. */
const freshMs = 1_000

const gauge = (name: string, help: string, value: number | undefined): readonly MetricSample[] =>
  value === undefined ? [] : [{ name: `agent_gateway_${name}`, help, type: 'gauge', value }]

const counter = (name: string, help: string, value: number): MetricSample => ({
  name: `agent_gateway_${name}`,
  help,
  type: 'counter',
  value,
})

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000)

function stateReadings(parts: ReadingParts, started: number): readonly MetricSample[] {
  const { limits, clock, logStatus, verification } = parts
  const { reload, listening, pool } = parts.live()
  const { dropped, problem } = logStatus()
  const { status, verifiedAt } = verification.state()
  const broken = status === 'broken'
  const age = Math.max(0, Math.round((clock.now() - (verifiedAt ?? started)) / 1_000))
  const { succeeded, at } = reload.last
  return [
    counter('log_lines_dropped_total', 'Log lines that could not be written.', dropped),
    ...gauge('log_failing', '1 while log lines cannot be written.', problem === undefined ? 0 : 1),
    ...gauge('held_body_bytes', 'Bytes of bodies that are held to decide on.', limits.heldBytes.inAll()),
    ...gauge('requests_in_flight', 'Proxied requests under way.', limits.inFlightInAll()),
    ...gauge(
      'circuits_open',
      'Open circuits, each of one agent or of all to one upstream.',
      limits.breaker.openAt(clock.steady()),
    ),
    ...gauge('audit_broken', '1 while the audit trail is not as it was written.', broken ? 1 : 0),
    ...gauge('audit_verified_age_seconds', 'Time since the end of the audit trail was reached.', age),
    counter('thread_restarts_total', 'Threads that died or hung, and were replaced.', pool?.replaced ?? 0),
    ...gauge('last_reload_success', '1 when the last reload found no mistake.', succeeded ? 1 : 0),
    ...gauge('last_reload_timestamp_seconds', 'When the last reload, or the start, was.', at / 1_000),
    ...gauge(
      'certificate_expiry_timestamp_seconds',
      'When the certificate for clients expires.',
      seconds(listening.expiresAt()),
    ),
  ]
}

function limitReadings({ config }: ReadingParts): readonly MetricSample[] {
  const { System, Proxy: proxy, HumanInTheLoop } = config
  const { MaxConnections, Threads } = System.Server
  return [
    ...gauge('client_connections_limit', 'Connections of clients beyond which more are refused.', MaxConnections),
    ...gauge(
      'upstream_connections_limit',
      'Connections to upstreams that all threads may have.',
      proxy.MaxConnections * Threads,
    ),
    ...gauge('held_body_bytes_limit', 'Bytes of bodies that may be held.', maxHeldBytes(config)),
    ...gauge('hitl_pending_limit', 'Requests that may wait for a reviewer.', HumanInTheLoop.MaxPendingRequests),
  ]
}

/** Names of credentials are those of the settings: accounts are counted, and not named. */
function credentialReadings({ upstreams, config }: ReadingParts): readonly MetricSample[] {
  const states = Map.groupBy(upstreams.keptCredentials?.keepers.all ?? [], ({ key }) => key.name)
  return config.Credentials.flatMap(({ Name = '' }) => {
    const found = (states.get(Name) ?? []).map(({ keeper }) => stateOf(keeper))
    return credentialStates.map(state => ({
      ...{ name: 'agent_gateway_credential_state', type: 'gauge', value: found.filter(one => one === state).length },
      ...{ help: '1 for the state in which a credential is; of accounts, how many.' },
      labels: { credential: Name, state },
    }))
  })
}

/** A store that does not answer must not hide the other metrics. */
async function storeReadings({ store, clock, config, budgets }: ReadingParts): Promise<readonly MetricSample[]> {
  const now = clock.now()
  const queues = queuesOf(config.HumanInTheLoop)
  /** Since when the first message of a queue could be sent. */
  const dueOf = async ({ name, afterMs }: MessageQueue) =>
    (await store.deliveries.next(name, 1)).map(({ note }) => note.at + afterMs)
  const unknown = () => undefined
  const [pending, oldest, due, spent] = await Promise.all([
    store.hitl.countPending(now).catch(unknown),
    store.hitl.oldestPending(now).then(at => Math.max(0, now - (at ?? now)) / 1_000, unknown),
    Promise.all(queues.map(dueOf)).catch(unknown),
    budgets.all().catch(unknown),
  ])
  return [
    ...gauge('hitl_pending', 'Requests that wait for a reviewer.', pending),
    ...gauge('hitl_oldest_pending_seconds', 'How long the oldest of them has waited.', oldest),
    ...gauge(
      'webhook_oldest_seconds',
      'Age of the oldest message that waits for a webhook.',
      due && Math.max(0, now - Math.min(now, ...due.flat())) / 1_000,
    ),
    ...(spent ?? []).flatMap(usedOf),
  ]
}

/** Names of budgets are those of the settings, 100 at most. */
const usedOf = ({ name, highestShare }: BudgetView): readonly MetricSample[] =>
  gauge('budget_used_ratio', budgetUsedHelp, highestShare ?? undefined).map(sample => ({
    ...sample,
    labels: { budget: name },
  }))

const budgetUsedHelp =
  'Largest part of its limit that one holder of a budget has spent in this window, in the whole fleet.'
