import { Worker } from 'node:worker_threads'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { Log } from '../log/log.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import { type Clock, inTime } from '../runtime/clock.ts'
import { type ArgumentsOf, type Methods, openLink } from '../runtime/link.ts'
import type { AgentRecord } from '../storage/store.ts'
import { PoolThread } from './member.ts'
import { type ControlCalls, errorOf, type ThreadCalls, type ThreadData } from './protocol.ts'
import type { PolicyChange } from './replica.ts'

/** The parts of the policies in force that other threads need. */
export type PolicyList = readonly Pick<PolicyEntry, 'document' | 'compiled'>[]

export interface PoolOptions {
  /** Threads beside the main one. */
  readonly count: number
  /** File that each of them runs. */
  readonly program: URL
  readonly data: Omit<ThreadData, 'thread' | 'agents' | 'credentials' | 'tokenEpoch' | 'fence'>
  /** Agents and policies at the start of a thread. */
  readonly agents: () => readonly AgentRecord[]
  readonly credentials: () => ThreadData['credentials']
  readonly tokenEpoch: () => string | undefined
  readonly policies: () => PolicyList
  /** Calls that threads may make. */
  readonly methods: Methods<ControlCalls>
  readonly log: Log
  readonly clock: Clock
  /** Releases the shared memory of a thread that has died. */
  readonly forget: (thread: number) => void
}

/** Calls with a change: they resolve when it is in force. */
type ThreadChange = Extract<keyof ThreadCalls, `change${string}` | `set${string}` | 'forgetGrant' | 'useSettings'>

export interface OpenPorts {
  readonly all: readonly number[]
  /** Ports on which every thread listens. */
  readonly shared: readonly number[]
}

/** Interval of the checks whether each thread responds, milliseconds. */
const askMs = 1_000
/** Unanswered checks after which a thread is ended; a thread that starts has code to load. */
const maxSilent = 5
const maxSilentAtStart = 60
/** A thread that has not applied a change in this time is ended: revoked rights must end there, too. */
const deafMs = 5_000
/**
 * How long a thread may take beyond the limit to stop, milliseconds. A thread that is ended leaves no record of the requests
 * it cut off, and a busy machine may delay a healthy thread by a second or more.
 */
const drainGraceMs = 5_000
/** Pause before a thread that died at once is started again, milliseconds. */
const restartMs = 1_000

/** The threads beside the main one. When a call with a change resolves, the change is in force in all of them. */
export class ThreadPool {
  readonly #options: PoolOptions
  readonly #members = new Map<number, PoolThread>()
  #ports: OpenPorts = { all: [], shared: [] }
  #peers: readonly string[] = []
  /** Policies that the threads have, or will have once they have applied the calls that were sent. */
  #sentPolicies: PolicyList = []
  #closing = false
  readonly #watch: NodeJS.Timeout
  /** Members that were replaced before their threads ended. */
  #late: readonly PoolThread[] = []
  /** Threads that died, or hung and were ended, and were replaced. */
  replaced = 0

  constructor(options: PoolOptions) {
    this.#options = options
    this.#watch = setInterval(() => this.#askAll(), askMs).unref()
  }

  async change<K extends ThreadChange>(method: K, ...args: ArgumentsOf<ThreadCalls[K]>): Promise<void> {
    await Promise.all([...this.#members.values()].map(member => this.#change(member, method, args)))
  }

  /** Where other gateways of the fleet listen. */
  async changePeers(urls: readonly string[]): Promise<void> {
    this.#peers = urls
    await this.change('setPeers', urls)
  }

  async changePolicies(list: PolicyList): Promise<void> {
    const change = changeBetween(this.#sentPolicies, list)
    this.#sentPolicies = list
    await this.change('changePolicies', change)
  }

  /**
   * Starts the threads; resolves when all of them listen. Rejects when one cannot.
   */
  async listen(ports: OpenPorts): Promise<void> {
    this.#ports = ports
    this.#sentPolicies = this.#options.policies()
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1)
    await Promise.all(numbers.map(thread => this.#start(thread)))
  }

  /** False when one of them could not reload its certificates. */
  async reload(): Promise<boolean> {
    const members = [...this.#members.values()]
    const done = await Promise.all(members.map(({ link }) => link.call('reload', []).catch(() => false)))
    return done.every(Boolean)
  }

  /** Rejects when one of them cannot use these settings. */
  async prepareSettings(config: Config): Promise<void> {
    // The others get them in `useSettings`, once they have started.
    const members = [...this.#members.values()].filter(({ listens }) => listens)
    const late = () => Promise.reject(new StartupError('A thread did not answer in time.'))
    await Promise.all(members.map(({ link }) => inTime(link.call('prepareSettings', [config]), deafMs, late)))
  }

  /** Requests that were cut off. */
  async drain(limitMs: number): Promise<number> {
    this.#closing = true
    const members = [...this.#members.values()]
    const counts = await Promise.all(members.map(member => drainOne(member, limitMs)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#watch)
    await Promise.all([...this.#members.values()].map(member => member.end()))
  }

  /** Threads that hang now where they cannot be ended: the process has to be killed. */
  get stuck(): number {
    return this.#late.filter(({ stuck }) => stuck).length
  }

  /** Ends a thread at once, as a crash would. Another thread replaces it. */
  async kill(thread: number): Promise<void> {
    await this.#members.get(thread)?.end()
  }

  /** Starts a thread with the agents and policies in force; it gets every change from here on. */
  async #start(thread: number): Promise<void> {
    const { program, data, agents, credentials, tokenEpoch, methods, clock, log } = this.#options
    const fence = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const now = { agents: agents(), credentials: credentials(), tokenEpoch: tokenEpoch() }
    const workerData: ThreadData = { ...data, ...now, thread, fence }
    const worker = new Worker(program, { workerData, name: `gateway-${thread}` })
    worker.once('error', error => log.error({ error }, `thread ${thread} died`))
    const started = clock.steady()
    const onEnd = () => this.#ended(thread, member, clock.steady() - started)
    const member: PoolThread = new PoolThread({
      thread,
      worker,
      link: openLink(worker, methods, { errorOf }),
      fence,
      log,
      onEnd,
    })
    this.#members.set(thread, member)
    try {
      await this.#open(member)
    } catch (error) {
      await member.end()
      throw error
    }
  }

  async #open(member: PoolThread): Promise<void> {
    const { link } = member
    await link.call('setListeners', [this.#ports.all])
    await link.call('setPeers', [this.#peers])
    member.listens = true
    // Changes that were sent before, without waiting for the answer, are applied before this one, and so before a connection
    // is accepted.
    await link.call('changePolicies', [changeBetween([], this.#sentPolicies)])
    if (!this.#closing) await link.call('listen', [this.#ports.shared])
  }

  #ended(thread: number, member: PoolThread, livedMs: number): void {
    this.#members.delete(thread)
    this.#late = [...this.#late, member].filter(({ stuck }) => stuck)
    this.#options.forget(thread)
    if (this.#closing) return
    this.replaced += 1
    this.#options.log.error({ count: this.replaced }, `thread ${thread} has ended and is replaced`)
    const again = () => {
      if (this.#closing) return
      this.#start(thread).catch(error => this.#options.log.error({ error }, `thread ${thread} could not be replaced`))
    }
    setTimeout(again, livedMs < restartMs ? restartMs : 0)
  }

  /** Ends the threads that no longer answer. */
  #askAll(): void {
    for (const [thread, member] of this.#members) {
      if (member.ask() < (member.listens ? maxSilent : maxSilentAtStart)) continue
      this.#options.log.error({}, `thread ${thread} does not answer and is ended`)
      void member.end()
    }
  }

  /** Resolves when the thread has answered or is gone. */
  async #change<K extends ThreadChange>(
    member: PoolThread,
    method: K,
    args: ArgumentsOf<ThreadCalls[K]>,
  ): Promise<void> {
    // A thread that cannot apply a change would go on with outdated rules.
    const done = member.link.call(method, args).catch(() => member.end())
    // A thread applies all earlier changes before it accepts connections.
    if (member.listens) await inTime(done, deafMs, () => member.end())
  }
}

/** Requests that were cut off. */
function drainOne(member: PoolThread, limitMs: number): Promise<number> {
  const drained = member.link.call('drain', [limitMs]).catch(() => 0)
  return inTime(drained, limitMs + drainGraceMs, () => member.end().then(() => 0))
}

function changeBetween(before: PolicyList, after: PolicyList): PolicyChange {
  const versions = new Map(before.map(({ document, compiled }) => [document.name, compiled.version]))
  const names = new Set(after.map(({ document }) => document.name))
  return {
    put: after
      .filter(({ document, compiled }) => versions.get(document.name) !== compiled.version)
      .map(entry => entry.document),
    removed: [...versions.keys()].filter(name => !names.has(name)),
  }
}
