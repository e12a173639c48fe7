/** A thread beside the main one: it accepts connections and serves proxied requests. The main thread does the rest. */
import { parentPort, workerData } from 'node:worker_threads'
import { type Commit, createLiveSettings, type LiveSettings } from '../config/live.ts'
import { createCredentialTable, type NeedCredential } from '../credentials/table.ts'
import { Fence } from '../fleet/fence.ts'
import { watchFence } from '../fleet/fence-watch.ts'
import { readCertificate } from '../http/certificate.ts'
import type { TokenLeases } from '../limits/lease.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import { describeError, type Log, type LogLevel } from '../log/log.ts'
import { createClientIp } from '../pipeline/client-ip.ts'
import type { Parts, Reviews } from '../pipeline/parts.ts'
import { languageOf } from '../policies/language.ts'
import { createRulebooks } from '../policies/rulebooks.ts'
import { clockIn, systemClock } from '../runtime/clock.ts'
import { type Link, openLink } from '../runtime/link.ts'
import type { KeyUse } from '../storage/store.ts'
import { createBatch, createTally } from '../threads/batch.ts'
import { createManagementRelay } from '../threads/management-relay.ts'
import {
  type ControlCalls,
  errorOf,
  grantCalls,
  type LogLine,
  queueCalls,
  type ThreadCalls,
  type ThreadData,
  type TrustNote,
} from '../threads/protocol.ts'
import { createAgentReplica, createPolicyReplica } from '../threads/replica.ts'
import { linkThreads, shareActivity } from '../threads/share.ts'
import { openTokenCheck } from '../tokens/open.ts'
import type { Lookup } from '../upstream/resolve.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import { openAuthority } from './authority.ts'
import { connectUrlOf } from './base.ts'
import { createDataPlane, type DataPlane } from './data-plane.ts'
import { openLeafs } from './interception.ts'
import { createListening } from './listening.ts'
import { openSharedLimits } from './shared.ts'
import type { SpendLeases } from './spend.ts'
import { type Counters, createCounters } from './telemetry.ts'
import { openTracing } from './tracing.ts'
import { openUpstreams } from './upstreams.ts'

const port = parentPort
if (port === null) throw new Error('cannot happen: thread.ts runs as a thread only')

/** Time between two sweeps of a thread, milliseconds. */
const sweepMs = 1_000

const data: ThreadData = workerData
const main: Link<ControlCalls> = openLink<ThreadCalls, ControlCalls>(
  port,
  {
    ping: () => undefined,
    changeAgent: async (id, agent) => (await served).agents.set(id, agent),
    changePolicies: async change => {
      const { policies, recent } = await served
      await policies.apply(change)
      // Before the first thread goes by the change for what is counted here.
      sendHits(recent)
    },
    changeTokens: async epoch => (await served).useEpoch(epoch),
    forgetGrant: async id => (await served).forgetGrant(id),
    setCredential: async state => (await served).credentials.set(state),
    listen: async ports => (await served).listening.join(ports),
    setListeners: async ports => (await served).upstreams.egress.setListeners(ports),
    setPeers: async urls => (await served).upstreams.egress.setPeers(urls),
    reload: async () => (await served).reload(),
    prepareSettings: async config => (await served).prepareSettings(config),
    useSettings: async config => (await served).useSettings(config),
    drain: async limitMs => (await served).drain(limitMs),
  },
  { errorOf },
)
const served = serve()

/** State of this thread, and its link to the first thread. */
async function learn() {
  const { baseDirectory, dataDirectory, env } = data
  const settings = createLiveSettings(data.config)
  const { config, onChange: onSettings } = settings
  const clock = data.clock === undefined ? systemClock : clockIn(data.clock)
  const log = createThreadLog()
  const lookup: Lookup = data.asksForLookup ? (name, signal) => main.call('lookup', [name, signal]) : systemLookup
  const counters = createCounters(data.memory, data.thread, config)
  const { metrics } = counters
  const need: NeedCredential = (...asked) => main.call('needCredential', asked)
  const credentials = createCredentialTable({
    ...{ known: data.credentials, need, clock, connectUrl: connectUrlOf(config) },
    onUse: name => main.notify('usedCredential', [name]),
    onWanted: (...wanted) => main.notify('wantedScopes', wanted),
  })
  const upstreams = await openUpstreams(config, baseDirectory, { clock, lookup, env, metrics, credentials, onSettings })
  const tracing = await openTracing({ config, log, env, clock, metrics, upstreams, channelName: data.channelName })
  const trust = createTally<TrustNote>(
    ([id, cause]) => `${cause} ${id}`,
    notes => main.notify('trust', [notes]),
  )
  const agents = createAgentReplica(data.agents, clock, (...note) => trust.add(note))
  const keyUses = createBatch<KeyUse>(uses => main.notify('keyUses', [uses]))
  const { verify, useEpoch } = await openTokenCheck({
    settings: config.Security.AgentAuth,
    dataDirectory,
    clock,
    agents,
    fetchDocument: upstreams.ownRequests.fetch,
    submitForm: upstreams.ownRequests.submitForm,
    onKeyUse: (keyId, at) => keyUses.add({ keyId, at }),
    onError: error => log.warn({ error }, 'the keys of the identity provider could not be fetched'),
  })
  await useEpoch(data.tokenEpoch)
  const policies = createPolicyReplica(languageOf(config))
  const recent = shareActivity([linkThreads(data.channelName)])
  const certificate = await readCertificate(config, baseDirectory)
  const authority = await openAuthority({ config, baseDirectory, dataDirectory, clock, log })
  const leafs = await openLeafs({ authority, clock, ticketKeys: Buffer.from(data.ticketKeys) })
  return {
    ...{ settings, config, onSettings },
    baseDirectory,
    clock,
    log,
    counters,
    credentials,
    tracing,
    upstreams,
    trust,
    keyUses,
    agents,
    verify,
    useEpoch,
    policies,
    recent,
    certificate,
    authority,
    leafs,
  }
}

async function serve() {
  const known = await learn()
  const { config, settings, onSettings, log, counters, upstreams, agents, policies, recent, trust, keyUses } = known
  const report = (what: string, error: unknown) => log.error({ error }, what)
  const tokens: TokenLeases = {
    need: agentId => main.notify('needTokens', [agentId]),
    asked: agentId => main.call('askedTokens', [agentId]),
    close: () => {},
  }
  // The main thread finishes, and removes old windows.
  const spend: SpendLeases = {
    need: key => main.notify('needSpend', [key]),
    asked: key => main.call('askedSpend', [key]),
    finish: async () => {},
    sweep: async () => {},
  }
  const limits = openSharedLimits(config, { ...data, log, onSettings, tokensFor: () => tokens, spendFor: () => spend })
  const storeFence = openStoreFence(data)
  const dataPlane = createDataPlane({
    ...{ ...known, limits, report },
    metrics: counters.metrics,
    fencedAs: fencedAs(data.fence, storeFence),
    fenceWatch: storeFence && watchFence(storeFence),
    verifyToken: known.verify,
    rulebookOf: createRulebooks(config, policies, onSettings),
    clientIpOf: createClientIp(config.System.Server.TrustedProxies),
  })
  const listening = createListening({
    ...{ ...known, ...dataPlane, egress: upstreams.egress, limits, acceptCounts: counters.acceptCounts, report },
    onProxy: dataPlane.createPipeline(reviews),
    onManagement: createManagementRelay(main, report),
    passedSockets: [],
  })
  setInterval(() => sweep(dataPlane, counters, recent), sweepMs)
  return {
    ...{ upstreams, agents, credentials: known.credentials, policies, recent, listening },
    ...settingsCalls(settings),
    useEpoch: known.useEpoch,
    forgetGrant: dataPlane.forgetGrant,
    async reload() {
      // The main thread reports why it failed: it has read the same files.
      const [certificateRead, authorityRead = true] = await Promise.all([
        listening.reload(),
        known.authority?.reload(),
        upstreams.prices?.reload(),
      ])
      return certificateRead && authorityRead
    },
    async drain(limitMs: number) {
      const cutOff = await listening.drain(limitMs, () => limits.inFlight[0]!)
      await sendLastShapes(dataPlane)
      sendHits(recent)
      for (const part of [trust, keyUses, log]) part.flush()
      recent.close()
      await known.tracing?.sink.close()
      return cutOff
    },
  }
}

function sweep(dataPlane: DataPlane, counters: Counters, recent: RecentActivity): void {
  dataPlane.sweep()
  counters.sample()
  sendShapes(dataPlane)
  sendHits(recent)
}

function sendHits({ hits }: Pick<RecentActivity, 'hits'>): void {
  const counts = hits.unstored()
  if (counts.length > 0) main.notify('hits', [counts])
}

function sendShapes({ recorder }: Pick<DataPlane, 'recorder'>): void {
  const taken = recorder?.take()
  if (taken !== undefined && taken.counts.length + taken.skipped.length > 0) main.notify('shapes', [taken])
}

async function sendLastShapes({ recorder }: Pick<DataPlane, 'recorder'>): Promise<void> {
  await recorder?.read()
  sendShapes({ recorder })
}

function settingsCalls(settings: LiveSettings): Pick<ThreadCalls, 'prepareSettings' | 'useSettings'> {
  let prepared: Commit | undefined
  let last = 0
  return {
    async prepareSettings(next) {
      last += 1
      const mine = last
      const commit = await settings.prepare(next)
      // One that was given up may end late.
      if (mine === last) prepared = commit
    },
    async useSettings(next) {
      const commit = prepared ?? (await settings.prepare(next))
      prepared = undefined
      commit()
    },
  }
}

const openStoreFence = ({ storeFence }: ThreadData): Fence | undefined =>
  storeFence && new Fence(systemClock, storeFence.limitMs, storeFence.memory)

/** Set when the main thread has given this thread up, or may lack the latest changes itself. */
function fencedAs(fence: Int32Array, store: Fence | undefined): Parts['fencedAs'] {
  return () => {
    if (Atomics.load(fence, 0) !== 0) return 'draining'
    return store?.isOpen === false ? 'fenced' : undefined
  }
}

/** The main thread does all of human in the loop. */
const reviews: Reviews = {
  queue: main.remote(queueCalls),
  grants: main.remote(grantCalls),
  noteTools: list => main.call('noteTools', [list]),
}

/** One log for all threads: lines are written by the main one. */
function createThreadLog(): Log & { flush(): void } {
  const batch = createBatch<LogLine>(lines => main.notify('log', [lines]))
  const writer =
    (level: LogLevel): Log[LogLevel] =>
    (fields, message) => {
      batch.add([level, 'error' in fields ? { ...fields, error: describeError(fields.error) } : fields, message])
      // It may be the last message of this thread.
      if (level === 'error') batch.flush()
    }
  return {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    line: (members, message) => batch.add(['info', members, message]),
    flush: () => batch.flush(),
  }
}
