import { extname } from 'node:path'
import type { ToolNotes } from '../agents/tools.ts'
import type { Environment } from '../config/environment.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import { callable, type Methods } from '../runtime/link.ts'
import { ThreadPool } from '../threads/pool.ts'
import { PortStream } from '../threads/port-stream.ts'
import { type ControlCalls, grantCalls, queueCalls } from '../threads/protocol.ts'
import type { Lookup } from '../upstream/resolve.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import type { Base } from './base.ts'
import type { Hitl } from './hitl.ts'
import type { Identity } from './identity.ts'
import type { Listening } from './listening.ts'
import type { Recording } from './recording.ts'
import type { Rules } from './rules.ts'
import type { SharedLimits } from './shared.ts'
import type { Upstreams } from './upstreams.ts'

export interface OpenPoolParts
  extends Pick<Base, 'config' | 'baseDirectory' | 'dataDirectory' | 'clock' | 'log' | 'fence'> {
  readonly identity: Identity
  readonly rules: Rules
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
  readonly hitl: Hitl
  readonly noteTools: ToolNotes['note']
  readonly listening: Listening
  readonly recording: Pick<Recording, 'add' | 'hits'>
  readonly limits: SharedLimits
  readonly memory: SharedMemory
  readonly channelName: string
  readonly ticketKeys: Buffer
}

export interface PoolGiven {
  readonly env?: Environment
  /** Replaces the system's resolver. */
  readonly lookup?: Lookup
}

/** The threads beside this one; undefined when it is to be alone. None runs before `listen`. */
export function openPool(parts: OpenPoolParts, given: PoolGiven): ThreadPool | undefined {
  const { config, baseDirectory, dataDirectory, clock, log, identity, rules, limits, memory, channelName } = parts
  const { Threads } = config.System.Server
  const storeFence = parts.fence && { memory: parts.fence.memory, limitMs: parts.fence.limitMs }
  if (Threads === 1) return undefined
  const { env = {}, lookup } = given
  const asksForLookup = lookup !== undefined
  return new ThreadPool({
    count: Threads - 1,
    program: new URL(`./thread${extname(import.meta.url)}`, import.meta.url),
    data: {
      config,
      baseDirectory,
      dataDirectory,
      env,
      memory,
      channelName,
      clock: clock.memory,
      asksForLookup,
      ticketKeys: parts.ticketKeys,
      storeFence,
    },
    agents: () => identity.registry.values(),
    credentials: () => parts.upstreams.keptCredentials?.states() ?? [],
    tokenEpoch: () => identity.tokenEpoch(),
    policies: () => rules.policies.book.list(),
    methods: controlOf(parts, lookup ?? systemLookup),
    forget: thread => limits.forget(thread),
    ...{ log, clock },
  })
}

/** The calls that threads may make to this one. */
function controlOf(
  { hitl, noteTools, identity, listening, limits, log, recording, upstreams }: OpenPoolParts,
  lookup: Lookup,
): Methods<ControlCalls> {
  return {
    ...callable(hitl.queue, queueCalls),
    ...callable(hitl.grants, grantCalls),
    noteTools,
    lookup,
    connect: (port, ends) => listening.adopt(new PortStream(port, ends)),
    log: lines => {
      for (const [level, fields, message] of lines) {
        if (typeof fields === 'string') log.line(fields, message)
        else log[level](fields, message)
      }
    },
    keyUses: uses => {
      for (const { keyId, at } of uses) identity.keys.noteUse(keyId, at)
    },
    needTokens: agentId => limits.agentRate.tokens?.need(agentId),
    askedTokens: async agentId => limits.agentRate.tokens?.asked(agentId),
    needSpend: key => limits.spend?.leases.need(key),
    needCredential: (...asked) => upstreams.keptCredentials?.need(...asked) ?? noCredentials(),
    usedCredential: async name => upstreams.keptCredentials?.noteUse(name),
    wantedScopes: async (...wanted) => void upstreams.keptCredentials?.noteWanted(...wanted),
    askedSpend: async key => limits.spend?.leases.asked(key),
    shapes: taken => recording.add(taken),
    hits: async counts => recording.hits.add(counts),
    trust: notes => {
      for (const [note, times] of notes) for (let time = 0; time < times; time++) identity.registry.recordTrust(...note)
    },
  }
}

function noCredentials(): never {
  throw new Error('cannot happen: the first thread keeps no credentials')
}
