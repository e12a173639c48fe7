import { resolve } from 'node:path'
import { bootstrapFile } from './agents/bootstrap.ts'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import type { DataPlane } from './compose/data-plane.ts'
import { createDataPlane } from './compose/data-plane.ts'
import type { Identity } from './compose/identity.ts'
import { openIdentity } from './compose/identity.ts'
import type { Rules } from './compose/rules.ts'
import { openRules } from './compose/rules.ts'
import type { Upstreams } from './compose/upstreams.ts'
import { createUpstreams } from './compose/upstreams.ts'
import type { Config } from './config/schema.ts'
import type { EventLog } from './hitl/events.ts'
import { createEventLog } from './hitl/events.ts'
import { createGrants } from './hitl/grants.ts'
import type { Queue } from './hitl/queue.ts'
import { createQueue } from './hitl/queue.ts'
import type { Listener } from './http/accept.ts'
import { createListener } from './http/accept.ts'
import type { Log } from './log.ts'
import { createManagement } from './management/management.ts'
import { createClientIp } from './pipeline/client-ip.ts'
import { viaName } from './pipeline/forward.ts'
import { openSqliteStore } from './storage/sqlite/open.ts'
import type { Store } from './storage/store.ts'
import { deriveKey } from './tokens/key.ts'
import type { Lookup } from './upstream/resolve.ts'
import { systemLookup } from './upstream/resolve.ts'

export interface GatewayOptions {
  readonly log: Log
  /** Folder that relative paths of the configuration start from: that of gateway.yaml. */
  readonly baseDirectory: string
  readonly clock?: Clock
  /** Replaces the system's resolver. */
  readonly lookup?: Lookup
}

export interface Gateway {
  /** Rows for the start-up block: name and text. */
  readonly summary: readonly (readonly [string, string])[]
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /** Proxied requests under way. */
  inFlight(): number
  /** Reads the policy files anew. False: there was a mistake, and all stays as it was. */
  reload(): Promise<boolean>
  /**
   * Stops accepting, lets requests in flight finish for System:Server:DrainSeconds, and closes everything.
   * Returns how many were cut off.
   */
  close(): Promise<number>
}

/** The parts that hold something open, in the order they are opened. */
interface Foundation {
  readonly config: Config
  readonly dataDirectory: string
  readonly clock: Clock
  readonly log: Log
  readonly store: Store
  readonly upstreams: Upstreams
  readonly identity: Identity
  readonly rules: Rules
}

type Closers = (() => unknown)[]
type Report = (what: string, error: unknown) => void

/** How often the parts tidy up behind themselves, milliseconds. */
const sweepMs = 1_000
/** Review events kept for reviewers whose stream broke off. */
const keptEvents = 1_000

/**
 * Builds every part from a configuration; nothing listens yet.
 *
 * @throws StartupError when the operator must mend something; everything opened so far is closed again
 */
export async function createGateway(config: Config, options: GatewayOptions): Promise<Gateway> {
  const closers: Closers = []
  try {
    return assemble(await open(config, options, closers), closers)
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

async function open(config: Config, options: GatewayOptions, closers: Closers): Promise<Foundation> {
  const { log, baseDirectory, clock = systemClock, lookup = systemLookup } = options
  const dataDirectory = resolve(baseDirectory, config.Storage.DataDirectory)
  const store = await openSqliteStore({ directory: dataDirectory, clock })
  closers.push(() => store.close())
  const upstreams = createUpstreams(config, baseDirectory, { clock, lookup })
  closers.push(() => upstreams.connections.close())
  const { fetchDocument } = upstreams
  const identity = await openIdentity({ config, dataDirectory, store, clock, log, fetchDocument })
  closers.push(() => identity.close())
  const rules = await openRules({ config, baseDirectory, store, clock, log, registry: identity.registry })
  closers.push(() => rules.policies.close())
  return { config, dataDirectory, clock, log, store, upstreams, identity, rules }
}

function assemble(foundation: Foundation, closers: Closers): Gateway {
  const { config, log, upstreams, rules } = foundation
  const report: Report = (what, error) => log.error({ error }, what)
  const clientIpOf = createClientIp(config.System.Server.TrustedProxies)
  const dataPlane = createDataPlane({ ...foundation, clientIpOf, report })
  const queue = createReviews(foundation, dataPlane, report)
  const listener = listenerOf(foundation, { dataPlane, queue, clientIpOf, report })
  const sweeper = setInterval(() => {
    dataPlane.sweep()
    queue.sweep().catch(error => report('expired reviews could not be removed', error))
  }, sweepMs)
  closers.push(() => clearInterval(sweeper))
  return {
    summary: summarise(foundation),
    async listen() {
      const { Host, Port } = config.System.Server.Http
      const { address, family, port } = await listener.listen(Host, Port)
      upstreams.egress.setListeners([port])
      return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`, port }
    },
    inFlight: () => dataPlane.inFlight(),
    reload: () => rules.policies.reload(),
    async close() {
      const cutOff = await drain(listener, dataPlane, config.System.Server.DrainSeconds * 1_000)
      await queue.idle()
      await closeAll(closers)
      return cutOff
    },
  }
}

function createReviews(foundation: Foundation, dataPlane: DataPlane, report: Report): Queue {
  const { config, clock, store, identity } = foundation
  const events = createEventLog({ clock, capacity: keptEvents, report })
  noteVerdicts(events, identity, dataPlane)
  const sealing = config.Security.Sealing.Secret
  return createQueue({
    store,
    clock,
    settings: config.HumanInTheLoop,
    sealingKey: deriveKey(sealing === undefined ? identity.tokens.secret : Buffer.from(sealing), 'sealing'),
    tokenHeader: config.Security.AgentAuth.CustomHeaderName,
    events,
    send: dataPlane.send,
    agentProblem: identity.problemOf,
    report,
  })
}

/** What a person thinks of a request tells more of its agent than any rule. */
function noteVerdicts(events: EventLog, { registry }: Identity, { activity }: DataPlane): void {
  events.subscribe(({ type, data, at }) => {
    const agentId = data['agentId']
    if (typeof agentId !== 'string') return
    if (type === 'completed') registry.recordTrust(agentId, 'humanApproval', null)
    if (type !== 'denied') return
    registry.recordTrust(agentId, 'humanDenial', null)
    activity.humanDenied(agentId, at)
  })
}

interface Roads {
  readonly dataPlane: DataPlane
  readonly queue: Queue
  readonly clientIpOf: ReturnType<typeof createClientIp>
  readonly report: Report
}

function listenerOf(foundation: Foundation, { dataPlane, queue, clientIpOf, report }: Roads): Listener {
  const { config, clock, store, identity, rules } = foundation
  const { Server } = config.System
  const reviews = { queue, grants: createGrants({ store, clock }) }
  const management = createManagement({
    registry: identity.registry,
    book: rules.policies.book,
    explain: rules.explain,
    queue,
    grant: identity.tokens.grant,
    verify: identity.tokens.verifyInternal,
    store,
    clock,
    allowedHosts: Server.AllowedHosts,
    clientAddress: clientIpOf,
  })
  return createListener({
    maxConnections: Server.MaxConnections,
    headersTimeoutMs: Server.HeadersTimeoutSeconds * 1_000,
    keepAliveMs: Server.KeepAliveSeconds * 1_000,
    viaName: config.Proxy.Via ? viaName : undefined,
    onProxy: incoming => dataPlane.enforce(incoming, reviews),
    onOwn: ({ req, res, requestId }) => management(req, res, requestId),
    report,
  })
}

/** What a person should know at start. */
function summarise({ config, dataDirectory, identity, rules }: Foundation): Gateway['summary'] {
  const names = rules.policies.book.list().map(({ document }) => document.name)
  const { DenyPrivateNetworks } = config.Egress
  return [
    ['Bootstrap', `${bootstrapFile(dataDirectory)} (credential of the first admin)`],
    ['Policies', names.length === 0 ? 'none: every request is denied' : names.join(', ')],
    ['Egress', `private and loopback destinations are ${DenyPrivateNetworks ? 'refused' : 'allowed'}`],
    ...(config.Policy.Mode === 'observe' ? [['Mode', 'OBSERVE: nothing is refused or held by policy'] as const] : []),
    ...identity.tokens.warnings.map(warning => ['Warning', warning] as const),
  ]
}

/** Resolves with the number of requests that had to be cut off. */
async function drain(listener: Listener, dataPlane: DataPlane, limitMs: number): Promise<number> {
  let cutOff = 0
  const timer = setTimeout(() => {
    cutOff = dataPlane.inFlight()
    listener.destroy()
  }, limitMs)
  await listener.drain().finally(() => clearTimeout(timer))
  return cutOff
}

/** Last opened, first closed. One that fails must not keep the others open. */
async function closeAll(closers: Closers): Promise<void> {
  for (const close of closers.splice(0).reverse()) await Promise.resolve(close()).catch(() => {})
}
