/** The gateways that share the store with this one, and digests of their settings, by which differences are found. */
import { hash, randomUUID } from 'node:crypto'
import { hostname, networkInterfaces } from 'node:os'
import { canonicalJson } from '../base/json.ts'
import { type LiveSettings, valueAt } from '../config/live.ts'
import { type Config, schema } from '../config/schema.ts'
import { type Setting, type SettingTree, settingsOf } from '../config/setting.ts'
import { Differences } from '../fleet/differences.ts'
import type { Fence } from '../fleet/fence.ts'
import type { Digests, GatewayReport } from '../fleet/peers.ts'
import { type FleetReading, viewFleet } from '../fleet/view.ts'
import type { ListenerAddress } from '../http/listeners.ts'
import type { Log } from '../log/log.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import type { Clock } from '../runtime/clock.ts'
import { ownVersion } from '../runtime/version.ts'
import type { ConnectionCounts } from '../storage/postgres/connection.ts'
import type { MetricSample } from '../telemetry/exposition.ts'

/** A store that other gateways may use as well. */
export interface FleetStore {
  readonly fence: Fence
  fleet(): FleetReading
  /** Undefined for a store without connections. */
  connections(): ConnectionCounts | undefined
  /** Publishes a part of this gateway's report to the other gateways. */
  publish(what: Partial<GatewayReport>): void
}

export type Fleet = ReturnType<typeof createFleet>

export const nameOf = ({ Fleet }: Pick<Config, 'Fleet'>): string => Fleet.Name ?? hostname()

export interface FleetParts {
  readonly config: Config
  readonly onSettings: LiveSettings['onChange']
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}

/** @param shared undefined when no other gateway can use the store */
export function createFleet({ config, onSettings, clock, log }: FleetParts, shared: FleetStore | undefined) {
  const differences = new Differences()
  const store = shared ?? createAlone(config, clock.now())
  let described: readonly PolicyEntry[] | undefined
  let certified: string | undefined
  onSettings(() => () => {
    described = undefined
  })
  const isOpen = () => shared?.fence.isOpen ?? true
  const view = () => viewFleet(store.fleet(), { now: clock.now(), isOpen: isOpen() })
  return {
    view,
    listens: (addresses: readonly ListenerAddress[]) => store.publish({ addresses: reachableAt(addresses) }),
    /**
     * Publishes the digests of the policies, and logs differences that last. Call about every second.
     *
     * @param authority fingerprint of the certificate authority, if there is one
     */
    sweep(policies: readonly PolicyEntry[], authority?: string) {
      if (described !== policies || certified !== authority) {
        store.publish({
          digests: { ...digestSettings(config), ...digestPolicies(policies), ...digestAuthority(authority) },
        })
      }
      described = policies
      certified = authority
      for (const { name, what } of differences.look(view().members, clock.steady())) {
        log.warn({ gateway: name, reason: `${what} differ` }, 'another gateway is not configured as this one')
      }
    },
    /** URLs at which the other gateways listen. */
    others: (): readonly string[] =>
      store.fleet().peers.flatMap(({ row }) => (row.id === store.fleet().self ? [] : row.addresses)),
    readings(): readonly MetricSample[] {
      const { peers, newest, applied, turnMs } = store.fleet()
      const gauge = (name: string, help: string, value: number): MetricSample => ({
        ...{ name: `agent_gateway_fleet_${name}`, help, type: 'gauge', value },
      })
      return [
        gauge('members', 'Gateways that share the store, this one among them.', peers.length),
        gauge('lag_changes', 'Changes that are not in force in this gateway.', Math.max(0, newest - applied)),
        gauge('fenced', '1 while this gateway does not serve, because it may lack changes.', isOpen() ? 0 : 1),
        gauge('last_turn_seconds', 'Time that this gateway last took to look for changes.', turnMs / 1_000),
        gauge('differences', 'Lasting differences from the policies and settings of others.', differences.count),
        ...connectionReadings(store.connections()),
      ]
    },
  }
}

function connectionReadings(counts: ConnectionCounts | undefined): readonly MetricSample[] {
  if (counts === undefined) return []
  const { waiting, ...states } = counts
  const name = 'agent_gateway_store_connections'
  const help = 'Connections to the database, by what they do.'
  return [
    ...Object.entries(states).map(
      ([state, value]) => ({ name, help, type: 'gauge', value, labels: { state } }) as const,
    ),
    {
      ...{ name: 'agent_gateway_store_waiting', help: 'Calls that wait for a connection to the database.' },
      ...{ type: 'gauge', value: waiting },
    },
  ]
}

/** A gateway with a store that no other gateway can open. */
function createAlone({ Fleet }: Pick<Config, 'Fleet'>, started: number): Omit<FleetStore, 'fence'> {
  let report: GatewayReport = { digests: {}, addresses: [] }
  const self = { id: randomUUID(), beat: 0, applied: 0, name: nameOf({ Fleet }), version: ownVersion(), started }
  return {
    fleet: () => ({
      peers: [{ row: { ...self, ...report }, since: 0, hasTurned: true }],
      ...{ self: self.id, newest: 0, applied: 0, turnMs: 0, fencedAfter: 0, at: 0 },
    }),
    connections: () => undefined,
    publish(what) {
      report = { ...report, ...what }
    },
  }
}

/** Addresses at which others reach this machine, instead of a wildcard. Unix sockets are left out. */
function reachableAt(addresses: readonly ListenerAddress[]): readonly string[] {
  const all = Object.values(networkInterfaces())
    .flat()
    .flatMap(one => (one === undefined ? [] : [one]))
  return addresses.flatMap(({ url, port }) => {
    const { hostname: host, protocol } = port === undefined ? { hostname: '', protocol: '' } : new URL(url)
    if (host !== '0.0.0.0' && host !== '[::]') return host === '' ? [] : [url]
    const wanted = all.filter(({ internal, family }) => !internal && (family === 'IPv4' || host === '[::]'))
    return wanted.map(({ address, family }) => `${protocol}//${family === 'IPv6' ? `[${address}]` : address}:${port}`)
  })
}

/** Settings of one machine, and settings with a separate digest. */
const ownSettings =
  /^(?:System:Server|Storage|Fleet|Logging|Telemetry|Security:Bootstrap|Egress:SelfUrls|Policies|ForwardProxy:(?:Host|Port|UnixPath|Ca))(?::|$)|:Directory$/

/** One for each group of settings. Secrets are left out: those that matter have fingerprints. */
function digestSettings(config: Config): Digests {
  const groups = new Map<string, Record<string, unknown>>()
  for (const [path, setting] of settingsOf(schema)) {
    const name = path.join(':')
    if (ownSettings.test(name) || setting.secret === true) continue
    const value = valueAt(config, path)
    const group = `settings under ${path[0]}`
    const values = groups.get(group) ?? {}
    values[name] = setting.entry === undefined ? value : withoutSecrets(value, setting.entry)
    groups.set(group, values)
  }
  return Object.fromEntries([...groups].map(([group, values]) => [group, digest(canonicalJson(values))]))
}

/** Digests of the policies in files and in gateway.yaml. */
function digestPolicies(list: readonly PolicyEntry[]): Digests {
  const fromFiles = list.filter(({ source }) => source !== 'api')
  const versions = fromFiles.map(({ document, compiled }) => `${document.name} ${compiled.version}`)
  return { 'policy files': digest(versions.join('\n')) }
}

/** @param fingerprint of the certificate authority; undefined without a forward proxy */
const digestAuthority = (fingerprint: string | undefined): Digests =>
  fingerprint === undefined ? {} : { 'certificate authorities': digest(fingerprint) }

function withoutSecrets(entries: unknown, tree: SettingTree): unknown {
  // Where the file with a secret lies is of one machine.
  const left = ({ secret, fills }: Setting<unknown>) => secret === true || fills !== undefined
  const secrets = new Set([...settingsOf(tree)].flatMap(([path, setting]) => (left(setting) ? path : [])))
  // Entries of such a setting are maps.
  return (entries as readonly object[]).map(entry =>
    Object.fromEntries(Object.entries(entry).filter(([key]) => !secrets.has(key))),
  )
}

const digest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 16)
