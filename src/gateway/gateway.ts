import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { createRepeats } from '../audit/repeats.ts'
import type { Environment } from '../config/environment.ts'
import { createLiveSettings, type LiveSettings } from '../config/live.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { watchFence } from '../fleet/fence-watch.ts'
import { readCurrentCertificate } from '../http/certificate.ts'
import type { ListenerAddress, PassedEndpoint } from '../http/listeners.ts'
import type { Log } from '../log/log.ts'
import type { LogStatus } from '../log/output.ts'
import { createClientIp } from '../pipeline/client-ip.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ThreadWatch } from '../runtime/watchdog.ts'
import { quarantines } from '../telemetry/layout.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'
import type { OpenPorts, ThreadPool } from '../threads/pool.ts'
import { shareRecent } from '../threads/share.ts'
import type { Lookup } from '../upstream/resolve.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import { auditAuthority, manageAuthority, openAuthority } from './authority.ts'
import { type Base, createFenced } from './base.ts'
import { createControlPlane, createTakeCall } from './control-plane.ts'
import { createDataPlane } from './data-plane.ts'
import { createHitl, openEvents } from './hitl.ts'
import { type IdentityParts, openIdentity } from './identity.ts'
import { createTicketKeys, openLeafs } from './interception.ts'
import { createListening } from './listening.ts'
import { createOverview } from './overview.ts'
import { createPeerGuard } from './peer-guard.ts'
import { createLoginLimit } from './rates.ts'
import { createPage } from './readings.ts'
import { openRecording } from './recording.ts'
import { createReload } from './reload.ts'
import { openRules } from './rules.ts'
import { createSharedMemory, openMainLimits, shareOf, threadsOf, threadsWarnings } from './shared.ts'
import { openBudgets } from './spend.ts'
import { stopServing } from './stop.ts'
import { createClock, openStorage } from './storage.ts'
import { type SummaryRow, summarise } from './summary.ts'
import { startSweeps } from './sweeps.ts'
import { countedStore, createTelemetry } from './telemetry.ts'
import { openPool } from './threads.ts'
import { openToolNotes } from './tool-notes.ts'
import { openTracing } from './tracing.ts'
import { openUpstreams } from './upstreams.ts'
import { openVerification } from './verification.ts'

export interface GatewayOptions {
  readonly log: Log
  /** Whether the lines of `log` are written; absent when nothing can go wrong with them. */
  readonly logStatus?: () => LogStatus
  /** Folder that relative paths of the configuration start from: that of gateway.yaml. */
  readonly baseDirectory: string
  readonly clock?: Clock
  /** Environment with the values of `Upstreams:ValueFromEnv`. */
  readonly env?: Environment
  /** Replaces the system's resolver. */
  readonly lookup?: Lookup
  /** Listening sockets that this process was given; they stand in for System:Server:Http and Management. */
  readonly passedSockets?: readonly PassedEndpoint[]
  /** Lets a thread that runs all the time watch this one. */
  readonly watch?: ThreadWatch
  /** Reads the settings again, as they were read for the start; absent: they do not change. */
  readonly readConfig?: () => LoadedConfig
  /** Changes the least severe level of `log`. */
  readonly setLogLevel?: (level: Config['Logging']['Level']) => void
  /** Folder of the built console; that of this installation when absent. */
  readonly consoleFolder?: string
}

export interface Gateway {
  /** Rows for the start-up block: name and text. */
  readonly summary: readonly SummaryRow[]
  /** Opens every endpoint; at least one. */
  listen(): Promise<readonly ListenerAddress[]>
  /** Proxied requests under way. */
  inFlight(): number
  /** Reloads settings, policies and certificates. False: there was a mistake; its subject stays as it was. */
  reload(): Promise<boolean>
  /** Names of the settings that the last reload found changed, and that only a restart puts in force. */
  needRestart(): readonly string[]
  /**
   * Serves for System:Server:StopDelaySeconds, stops accepting, lets requests in flight finish for DrainSeconds, and
   * closes everything.
   * Returns how many were cut off.
   */
  close(): Promise<number>
  /** The threads that serve beside this one; undefined when it is alone. */
  readonly pool: Pick<ThreadPool, 'kill' | 'close' | 'replaced' | 'stuck'> | undefined
}

/** The parts that hold something open, in the order they are opened. */
interface Foundation extends Awaited<ReturnType<typeof open>> {
  readonly tracing: Tracing | undefined
  /** Warnings at start, besides those of the parts. */
  readonly warnings: readonly string[]
}

/** Parts that follow policies, grants and quarantines, but are made after them. */
interface Followers {
  pool: ThreadPool | undefined
  /** Called for each change of policies, before the change is answered. */
  onPolicies: ThreadPool['changePolicies']
  onQuarantine: IdentityParts['onQuarantine']
  /** A grant was withdrawn; undefined: any of them may have been. */
  onGrant: (id: string | undefined) => Promise<void>
}

const alwaysWritten = (): LogStatus => ({ dropped: 0, problem: undefined })

type Closers = (() => unknown)[]

interface AssemblyOptions extends GatewayOptions {
  /** The configuration as it was given. */
  readonly start: Config
}

/**
 * Builds every part from a configuration; nothing listens yet.
 *
 * @throws StartupError when the operator must mend something; everything opened so far is closed again
 */
export async function createGateway(config: Config, options: GatewayOptions): Promise<Gateway> {
  const closers: Closers = []
  try {
    const settings = createLiveSettings(shareOf(config, threadsOf(config, options)))
    settings.onChange(next => () => options.setLogLevel?.(next.Logging.Level))
    const opened = await open(settings, options, closers)
    const tracing = await openTracing({ ...opened, ...opened.telemetry, env: options.env ?? {} })
    closers.push(() => tracing?.sink.close())
    const warnings = threadsWarnings(config, options)
    return assemble({ ...opened, tracing, warnings }, { ...options, start: config }, closers)
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

async function open(settings: LiveSettings, options: GatewayOptions, closers: Closers) {
  const { config, onChange: onSettings } = settings
  const { log, baseDirectory, env = {}, clock = createClock(config, log), lookup = systemLookup } = options
  const { passedSockets = [], logStatus = alwaysWritten, consoleFolder } = options
  const report: Base['report'] = (what, error) => log.error({ error }, what)
  const certificate = await readCurrentCertificate(config, baseDirectory, clock.now())
  const dataDirectory = resolve(baseDirectory, config.Storage.DataDirectory)
  const memory = createSharedMemory(config)
  const telemetry = createTelemetry(memory, config)
  closers.push(() => telemetry.close())
  const started = { config, onSettings, baseDirectory, dataDirectory, clock, log, report }
  const storage = await openStorage({ ...started, watch: options.watch })
  const { member, fence, board, fleet, rates } = storage
  const { metrics } = telemetry
  const store = countedStore(storage.store, metrics, clock)
  closers.push(() => store.close())
  const fenceWatch = fence && watchFence(fence)
  closers.push(() => fenceWatch?.close())
  const repeats = createRepeats({ audit: store.audit.append, clock })
  closers.push(() => repeats.close())
  const upstreams = await openUpstreams(config, baseDirectory, { clock, lookup, env, log, metrics, onSettings })
  closers.push(() => upstreams.close())
  // Threads share recent activity on it.
  const channelName = `agent-gateway ${randomUUID()}`
  const recent = shareRecent({ threads: config.System.Server.Threads, channelName, board })
  closers.push(() => recent.close())
  const { fetch: fetchDocument, submitForm } = upstreams.ownRequests
  const followers: Followers = {
    pool: undefined,
    onPolicies: async () => {},
    onQuarantine: () => {},
    onGrant: async () => {},
  }
  upstreams.keptCredentials?.follow(state => followers.pool?.change('setCredential', state))
  const onQuarantine: IdentityParts['onQuarantine'] = (...what) => followers.onQuarantine(...what)
  const onTokens: IdentityParts['onTokens'] = async epoch => followers.pool?.change('changeTokens', epoch)
  const asked = { fetchDocument, submitForm, loginLimit: createLoginLimit(config, rates), onQuarantine, onTokens }
  const identity = await openIdentity({ config, dataDirectory, store, clock, log, ...asked })
  closers.push(() => identity.close())
  await upstreams.keptCredentials?.followStore({ config, store, identity, report })
  const { registry } = identity
  const onPolicies: ThreadPool['changePolicies'] = list => followers.onPolicies(list)
  const rules = await openRules({ config, onSettings, baseDirectory, store, clock, log, registry, onPolicies })
  closers.push(() => rules.policies.close())
  closers.push(() => rules.work.close())
  await store.feed.grants.follow({ load: () => followers.onGrant(undefined), change: id => followers.onGrant(id) })
  const events = await openEvents({ store, identity, report })
  const authority = await openAuthority({ config, baseDirectory, dataDirectory, clock, log })
  const ticketKeys = createTicketKeys()
  const leafs = await openLeafs({ authority, clock, ticketKeys })
  await storage.untilOpen()
  if (authority !== undefined) await auditAuthority({ store, clock }, authority.current)
  const given = { settings, passedSockets, consoleFolder, logStatus }
  const files = { certificate, authority, leafs, ticketKeys }
  const shared = { memory, telemetry, store, member, fence, fenceWatch, fleet, rates, repeats }
  const opened = { recent, channelName, upstreams, identity, rules, events, followers }
  return { ...started, ...given, ...files, ...shared, ...opened }
}

function assemble(foundation: Foundation, options: AssemblyOptions, closers: Closers): Gateway {
  const { config, upstreams, rules, identity, memory, telemetry } = foundation
  const clientIpOf = createClientIp(config.System.Server.TrustedProxies)
  const limits = openMainLimits(foundation, closers)
  const dataPlane = createDataPlane({
    ...{ ...foundation, limits, clientIpOf, fencedAs: createFenced(foundation.fence) },
    metrics: telemetry.metrics,
    agents: identity.registry,
    verifyToken: identity.tokens.verify,
    rulebookOf: rules.rulebookOf,
  })
  const recording = openRecording({ ...foundation, dataPlane }, closers)
  const budgets = openBudgets(foundation, limits.spend)
  const hitl = createHitl({ ...foundation, dataPlane, budgets, takeCall: createTakeCall({ ...foundation, limits }) })
  const watched = { ...foundation, hitl, limits, telemetry, budgets, recording, ...watchesOf(foundation) }
  const overview = createOverview(watched)
  const { bounds, workTurns, interception } = dataPlane
  const { note: noteTools } = openToolNotes(foundation)
  let isStopping = false
  const page = createPage({ ...watched, live: () => ({ listening, pool, reload }) })
  const serving = { bounds, workTurns, clientIpOf, page, isStopping: () => isStopping }
  const management = createControlPlane({ ...watched, overview, ...serving, authority: manageAuthority(foundation) })
  const listening = createListening({
    ...{ ...foundation, limits, bounds, interception, egress: upstreams.egress, acceptCounts: telemetry.acceptCounts },
    onProxy: dataPlane.createPipeline({ ...hitl, noteTools }),
    onManagement: management,
  })
  const pool = openPool({ ...foundation, hitl, noteTools, listening, limits, memory, recording }, options)
  foundation.followers.pool = pool
  foundation.followers.onPolicies = list => recording.hits.follow(list, pool)
  const reload = createReload({ ...foundation, ...options, pool, listening })
  foundation.followers.onGrant = async id => {
    dataPlane.forgetGrant(id)
    await pool?.change('forgetGrant', id)
  }
  identity.registry.subscribe((id, agent) => pool?.change('changeAgent', id, agent))
  foundation.followers.onQuarantine = (_, cause) => telemetry.metrics.count(quarantines, cause)
  closers.push(() => pool?.close())
  const guardPeers = createPeerGuard(foundation)
  const sweeper = startSweeps({ ...watched, dataPlane, overview, guardPeers })
  closers.push(() => clearInterval(sweeper))
  return {
    ...{ summary: summarise(foundation), pool, needRestart: () => reload.needRestart },
    async listen() {
      guardPeers()
      const addresses = await listening.listen()
      await pool?.listen(portsOf(addresses))
      foundation.fleet.listens(addresses)
      return addresses
    },
    inFlight: () => limits.inFlightInAll(),
    reload: () => reload.run(),
    async close() {
      isStopping = true
      const cutOff = await stopServing({ ...foundation, hitl, pool, listening, limits })
      await closeAll(closers)
      return cutOff
    },
  }
}

const portsOf = (addresses: readonly ListenerAddress[]): OpenPorts => ({
  all: addresses.flatMap(({ port }) => port ?? []),
  shared: addresses.flatMap(({ port, isShared }) => (isShared && port) || []),
})

/** Measurements of the gateway itself. */
const watchesOf = (foundation: Foundation) => ({
  /** Whether every thread responds. */
  threadsAnswer: (): boolean => (foundation.followers.pool?.stuck ?? 0) === 0,
  verification: openVerification(foundation),
})

/** Closes in the reverse order of opening. A failure must not keep the other parts open. */
async function closeAll(closers: Closers): Promise<void> {
  for (const close of closers.splice(0).reverse()) await Promise.resolve(close()).catch(() => {})
}
