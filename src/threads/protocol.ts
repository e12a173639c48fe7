/** Calls between the main thread and the other threads. */
import type { MessagePort } from 'node:worker_threads'
import type { TrustCause } from '../agents/agent.ts'
import type { ToolNotes } from '../agents/tools.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import type { CredentialState } from '../credentials/state.ts'
import type { NeedCredential, NoteWanted } from '../credentials/table.ts'
import type { Fence } from '../fleet/fence.ts'
import type { Grants } from '../hitl/grants.ts'
import type { Queue } from '../hitl/queue.ts'
import type { TokenLeases } from '../limits/lease.ts'
import type { RuleCount } from '../limits/rule-tally.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import type { LogFields, LogLevel } from '../log/log.ts'
import type { TakenShapes } from '../pipeline/ends/recorder.ts'
import { type Failure, threadError } from '../runtime/link.ts'
import { type AgentRecord, type KeyUse, StoreError } from '../storage/store.ts'
import type { Lookup } from '../upstream/resolve.ts'
import type { Counted } from './batch.ts'
import type { SocketEnds } from './port-stream.ts'
import type { PolicyChange } from './replica.ts'

export interface ThreadData {
  readonly config: Config
  readonly baseDirectory: string
  readonly dataDirectory: string
  readonly env: Environment
  /** From 1; the main thread is 0. */
  readonly thread: number
  readonly memory: SharedMemory
  /** Name of the channel for notes about exchanges. */
  readonly channelName: string
  readonly agents: readonly AgentRecord[]
  readonly credentials: readonly CredentialState[]
  readonly tokenEpoch: string | undefined
  /** One number: 1 when the main thread has given this thread up. Then nothing more may be sent. */
  readonly fence: Int32Array
  /** Fence of a store that several processes can open; absent for other stores. */
  readonly storeFence: Pick<Fence, 'memory' | 'limitMs'> | undefined
  /** Memory of the main thread's clock; the system's clock when absent. */
  readonly clock: SharedArrayBuffer | undefined
  /** Keys with which TLS sessions in tunnels are resumed. */
  readonly ticketKeys: Uint8Array
  /** Names are looked up by the main thread. */
  readonly asksForLookup: boolean
}

/** Calls of the main thread to a thread. Each resolves when its change holds there. */
export interface ThreadCalls {
  /** Resolves if the thread responds. */
  ping(): Promise<void>
  changeAgent(id: string, agent: AgentRecord | undefined): Promise<void>
  changePolicies(change: PolicyChange): Promise<void>
  changeTokens(epoch: string | undefined): Promise<void>
  forgetGrant(id: string | undefined): Promise<void>
  setCredential(state: CredentialState): Promise<void>
  /** Opens these ports, which the first thread has opened as well. */
  listen(ports: readonly number[]): Promise<void>
  /** Ports of the gateway itself: requests must not be forwarded to them. */
  setListeners(ports: readonly number[]): Promise<void>
  /** Addresses of the other gateways of the fleet: requests must not be forwarded there either. */
  setPeers(urls: readonly string[]): Promise<void>
  /** Reads certificates and prices again; false when that failed and the old ones stay. */
  reload(): Promise<boolean>
  /** Makes what other settings need, credentials of upstreams among them, and keeps it for `useSettings`. */
  prepareSettings(config: Config): Promise<void>
  /** Puts the settings in force. A thread that has just started prepares them first. */
  useSettings(config: Config): Promise<void>
  /** Stops accepting; resolves with the number of requests that were cut off after the limit. */
  drain(limitMs: number): Promise<number>
}

export type LogLine = readonly [level: LogLevel, fields: LogFields | string, message: string]
export type TrustNote = readonly [agentId: string, cause: TrustCause, requestId: string | null]

/** Calls that the main thread answers for the other threads, by the names of its methods. */
export const queueCalls = ['suspend', 'checkKey', 'waitAsCall', 'cancelCall', 'answer'] as const
export const grantCalls = ['covers', 'use', 'giveBack'] as const
type QueueCalls = Pick<Queue, (typeof queueCalls)[number]>
type GrantCalls = Pick<Grants, (typeof grantCalls)[number]>

/** Calls of a thread to the main thread. */
export interface ControlCalls extends QueueCalls, GrantCalls {
  noteTools: ToolNotes['note']
  /** Opens a connection for calls of the gateway's own API, with the addresses of the client's connection. */
  connect(port: MessagePort, ends: SocketEnds): Promise<void>
  lookup: Lookup
  log(lines: readonly LogLine[]): Promise<void>
  keyUses(uses: readonly KeyUse[]): Promise<void>
  needTokens: TokenLeases['need']
  askedTokens: TokenLeases['asked']
  needSpend: TokenLeases['need']
  askedSpend: TokenLeases['asked']
  /** Shapes of requests that a thread has counted. */
  shapes(taken: TakenShapes): Promise<void>
  hits(counts: readonly RuleCount[]): Promise<void>
  needCredential: NeedCredential
  usedCredential(name: string): Promise<void>
  wantedScopes(...wanted: Parameters<NoteWanted>): Promise<void>
  /** Causes that change the trust of agents; of repeated ones, the first. */
  trust(notes: readonly Counted<TrustNote>[]): Promise<void>
}

/** A StoreError of the other thread is a StoreError here. */
export function errorOf(failure: Failure | undefined): Error {
  return failure?.name === 'StoreError' ? new StoreError(failure.message) : threadError(failure)
}
