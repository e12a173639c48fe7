import { extname } from 'node:path'
import type { ToolNotes } from '../agents/tools.ts'
import type { Environment } from '../config/environment.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import type { Methods } from '../runtime/link.ts'
import { createPool, type ThreadPool } from '../threads/pool.ts'
import { PortStream } from '../threads/port-stream.ts'
import type { ControlCalls } from '../threads/protocol.ts'
import type { Lookup } from '../upstream/resolve.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import type { Base } from './base.ts'
import type { Hitl } from './hitl.ts'
import type { Identity } from './identity.ts'
import type { Listening } from './listening.ts'
import type { Rules } from './rules.ts'
import type { SharedLimits } from './shared.ts'

export interface OpenPoolParts
  extends Pick<Base, 'config' | 'baseDirectory' | 'dataDirectory' | 'clock' | 'log' | 'fence'> {
  readonly identity: Identity
  readonly rules: Rules
  readonly hitl: Hitl
  readonly noteTools: ToolNotes['note']
  readonly listening: Listening
  readonly limits: SharedLimits
  readonly memory: SharedMemory
  readonly channelName: string
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
  return createPool({
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
      storeFence,
    },
    agents: () => identity.registry.values(),
    tokenEpoch: () => identity.tokenEpoch(),
    policies: () => rules.policies.book.list(),
    methods: controlOf(parts, lookup ?? systemLookup),
    forget: thread => limits.forget(thread),
    ...{ log, clock },
  })
}

/** The calls that threads may make to this one. */
function controlOf(
  { hitl, noteTools, identity, listening, limits, log }: OpenPoolParts,
  lookup: Lookup,
): Methods<ControlCalls> {
  return {
    suspend: (_, held) => hitl.queue.suspend(held),
    waitAsCall: (signal, id, terms) => hitl.queue.waitAsCall(id, terms, signal),
    cancelCall: (_, ...args) => hitl.queue.cancelCall(...args),
    answer: (_, id, viewer) => hitl.queue.answer(id, viewer),
    checkKey: (_, agentId, key) => hitl.queue.checkKey(agentId, key),
    useGrant: (_, held) => hitl.grants.use(held),
    releaseKey: (_, key) => hitl.grants.releaseKey(key),
    noteTools: (_, list) => noteTools(list),
    connect: (_, port, ends) => listening.adopt(new PortStream(port, ends)),
    lookup: (signal, name) => lookup(name, signal),
    log: (_, lines) => {
      for (const [level, fields, message] of lines) {
        if (typeof fields === 'string') log.line(fields, message)
        else log[level](fields, message)
      }
    },
    keyUses: (_, uses) => {
      for (const { keyId, at } of uses) identity.keys.noteUse(keyId, at)
    },
    needTokens: (_, agentId) => limits.agentRate.tokens?.need(agentId),
    askedTokens: (_, agentId) => limits.agentRate.tokens?.asked(agentId),
    trust: (_, notes) => {
      for (const [note, times] of notes) for (let time = 0; time < times; time++) identity.registry.recordTrust(...note)
    },
  }
}
