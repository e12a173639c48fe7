/** Calls between the main thread and the other threads. */
import type { MessagePort } from 'node:worker_threads'
import type { ToolNotes } from '../agents/tools.ts'
import type { TrustCause } from '../agents/trust.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import type { Fence } from '../fleet/fence.ts'
import type { Grants } from '../hitl/grants.ts'
import type { Queue } from '../hitl/queue.ts'
import type { TokenLeases } from '../limits/lease.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import type { LogFields, LogLevel } from '../log/log.ts'
import { type Failure, threadError } from '../runtime/link.ts'
import { type AgentRecord, type KeyUse, StoreError } from '../storage/store.ts'
import type { Lookup } from '../upstream/resolve.ts'
import type { Counted } from './batch.ts'
import type { SocketEnds } from './port-stream.ts'
import type { PolicyChange } from './replica.ts'

/** Data that a thread starts with. */
export interface ThreadData {
  readonly config: Config
  readonly baseDirectory: string
  readonly dataDirectory: string
  readonly env: Environment
  /** From 1; the main thread is 0. */
  readonly thread: number
  readonly memory: SharedMemory
  /** Takes what threads note of exchanges. */
  readonly channelName: string
  readonly agents: readonly AgentRecord[]
  /** What the keys of tokens are derived with. */
  readonly tokenEpoch: string | undefined
  /** One number, 1 when the main thread has given this one up: then nothing more may be sent. */
  readonly fence: Int32Array
  /** That of a store which several processes can open; absent for others. */
  readonly storeFence: Pick<Fence, 'memory' | 'limitMs'> | undefined
  /** A clock of the main thread's own; the system's when absent. */
  readonly clock: SharedArrayBuffer | undefined
  /** What sessions of clients in tunnels are resumed with. */
  readonly ticketKeys: Uint8Array
  /** Names are looked up by the main thread. */
  readonly asksForLookup: boolean
}

/** Calls of the main thread to a thread. Each resolves when its change holds there. */
export interface ThreadCalls {
  /** Resolves while the thread responds. */
  ping(): Promise<void>
  changeAgent(id: string, agent: AgentRecord | undefined): Promise<void>
  changePolicies(change: PolicyChange): Promise<void>
  /** All tokens of before are void. */
  changeTokens(epoch: string | undefined): Promise<void>
  /** A grant was withdrawn. */
  forgetGrant(id: string | undefined): Promise<void>
  /** Opens these ports, which the first thread has opened as well. */
  listen(ports: readonly number[]): Promise<void>
  /** Ports of the gateway itself: requests must not be forwarded to them. */
  setListeners(ports: readonly number[]): Promise<void>
  /** Where other gateways of the fleet listen: requests must not be forwarded there either. */
  setPeers(urls: readonly string[]): Promise<void>
  /** Reads credentials of upstreams again; false when that failed and the old ones stay. */
  reload(): Promise<boolean>
  /** Stops accepting; resolves with the number of requests that were cut off after the limit. */
  drain(limitMs: number): Promise<number>
}

export type LogLine = readonly [level: LogLevel, fields: LogFields | string, message: string]
export type TrustNote = readonly [agentId: string, cause: TrustCause, requestId: string | null]

/** What the main thread does for the others, by the names of its own methods. */
export const queueCalls = ['suspend', 'checkKey', 'waitAsCall', 'cancelCall', 'answer'] as const
export const grantCalls = ['use', 'releaseKey'] as const
type QueueCalls = Pick<Queue, (typeof queueCalls)[number]>
type GrantCalls = Pick<Grants, (typeof grantCalls)[number]>

/** Calls of a thread to the main thread. */
export interface ControlCalls extends QueueCalls, GrantCalls {
  noteTools: ToolNotes['note']
  /** A connection for calls of the gateway itself, with the ends of that of the client. */
  connect(port: MessagePort, ends: SocketEnds): Promise<void>
  lookup: Lookup
  log(lines: readonly LogLine[]): Promise<void>
  keyUses(uses: readonly KeyUse[]): Promise<void>
  needTokens: TokenLeases['need']
  askedTokens: TokenLeases['asked']
  /** Causes that change the trust of agents; of repeated ones, the first. */
  trust(notes: readonly Counted<TrustNote>[]): Promise<void>
}

/** A failure of the store in the other thread is one here. */
export function errorOf(failure: Failure | undefined): Error {
  return failure?.name === 'StoreError' ? new StoreError(failure.message) : threadError(failure)
}
