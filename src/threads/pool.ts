import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { Link, Methods } from './link.ts'
import { openLink } from './link.ts'
import type { ControlCalls, ThreadCalls, ThreadData } from './protocol.ts'
import type { PolicyChange } from './replica.ts'

/** The policies in force, as far as other threads need them. */
type PolicyList = readonly Pick<PolicyEntry<unknown>, 'document' | 'version'>[]

export interface PoolOptions {
  /** Threads beside the main one. */
  readonly count: number
  readonly data: Omit<ThreadData, 'thread' | 'agents'>
  /** What is in force when a thread starts. */
  readonly agents: () => readonly AgentRecord[]
  readonly policies: () => PolicyList
  /** What threads may ask. */
  readonly methods: Methods<ControlCalls>
  readonly log: Log
  readonly clock: Clock
  /** Tidies up behind a thread that has died. */
  readonly forget: (thread: number) => void
}

/** The threads beside the main one. A change that is told to them holds in all of them when the call resolves. */
export interface Pool {
  changeAgent(id: string, agent: AgentRecord | undefined): Promise<void>
  changePolicies(list: PolicyList): Promise<void>
  /**
   * Starts the threads; resolves when all of them listen. Rejects when one cannot.
   *
   * @param ports of the gateway, the one to share first
   */
  listen(ports: readonly number[]): Promise<void>
  /** False when one of them could not read its credentials anew. */
  reload(): Promise<boolean>
  /** Requests that were cut off. */
  drain(limitMs: number): Promise<number>
  close(): Promise<void>
  /** Ends a thread at once, as a crash would. Another takes its place. */
  kill(thread: number): Promise<void>
  /** Threads that died and were replaced. */
  readonly replaced: number
}

/** A thread that does not answer this long is ended: nothing that was revoked may go on there. */
const deafMs = 5_000
/** A thread that dies at once is started again after this. */
const restartMs = 1_000

interface Member {
  readonly worker: Worker
  readonly link: Link<ThreadCalls>
  /** Whether it takes connections, or is about to. */
  listens: boolean
}

export function createPool(options: PoolOptions): Pool {
  return new ThreadPool(options)
}

class ThreadPool implements Pool {
  readonly #options: PoolOptions
  readonly #members = new Map<number, Member>()
  #ports: readonly number[] = []
  /** Policies that the threads have, or will have once they have done what they were told. */
  #told: PolicyList = []
  #closing = false
  replaced = 0

  constructor(options: PoolOptions) {
    this.#options = options
  }

  async changeAgent(id: string, agent: AgentRecord | undefined): Promise<void> {
    await this.#tell(({ link }) => link.call('changeAgent', [id, agent]))
  }

  async changePolicies(list: PolicyList): Promise<void> {
    const change = changeBetween(this.#told, list)
    this.#told = list
    await this.#tell(({ link }) => link.call('changePolicies', [change]))
  }

  async listen(ports: readonly number[]): Promise<void> {
    this.#ports = ports
    this.#told = this.#options.policies()
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1)
    await Promise.all(numbers.map(thread => this.#start(thread)))
  }

  async reload(): Promise<boolean> {
    const members = [...this.#members.values()]
    const done = await Promise.all(members.map(({ link }) => link.call('reload', []).catch(() => false)))
    return done.every(Boolean)
  }

  async drain(limitMs: number): Promise<number> {
    this.#closing = true
    const members = [...this.#members.values()]
    const counts = await Promise.all(members.map(({ link }) => link.call('drain', [limitMs]).catch(() => 0)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#members.values()].map(({ worker }) => worker.terminate()))
  }

  async kill(thread: number): Promise<void> {
    await this.#members.get(thread)?.worker.terminate()
  }

  /** Starts a thread, which first learns what is in force: whatever changes from here on is told to it as well. */
  async #start(thread: number): Promise<void> {
    const { data, agents, methods, clock, log } = this.#options
    const file = new URL(`./thread${extname(import.meta.url)}`, import.meta.url)
    const workerData: ThreadData = { ...data, thread, agents: agents() }
    const worker = new Worker(file, { workerData, name: `gateway-${thread}` })
    const member: Member = { worker, link: openLink(worker, methods), listens: false }
    this.#members.set(thread, member)
    worker.once('error', error => log.error({ error }, `thread ${thread} died`))
    const started = clock.steady()
    worker.once('exit', () => this.#ended(thread, member, clock.steady() - started))
    try {
      await this.#open(member)
    } catch (error) {
      // One that cannot serve is worth no more than none.
      await worker.terminate()
      throw error
    }
  }

  async #open(member: Member): Promise<void> {
    const { link } = member
    await link.call('setListeners', [this.#ports])
    member.listens = true
    // The changes of which nobody has waited for it are made before this one, and so before it takes a connection.
    await link.call('changePolicies', [changeBetween([], this.#told)])
    if (!this.#closing) await link.call('listen', [this.#ports[0] as number])
  }

  #ended(thread: number, member: Member, livedMs: number): void {
    this.#members.delete(thread)
    member.link.end()
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

  /** Resolves when each thread has done it, or is gone. */
  async #tell(ask: (member: Member) => Promise<unknown>): Promise<void> {
    await Promise.all([...this.#members.values()].map(member => this.#ask(member, ask)))
  }

  async #ask(member: Member, ask: (member: Member) => Promise<unknown>): Promise<void> {
    // One that cannot do what it is told would go on with what is no longer in force.
    const done = ask(member).catch(() => member.worker.terminate())
    // What is told to a thread before it takes connections holds when it does.
    if (!member.listens) return
    const timer = setTimeout(() => void member.worker.terminate(), deafMs)
    await done.finally(() => clearTimeout(timer))
  }
}

/** What makes `after` of `before`. */
function changeBetween(before: PolicyList, after: PolicyList): PolicyChange {
  const versions = new Map(before.map(({ document, version }) => [document.name, version]))
  const names = new Set(after.map(({ document }) => document.name))
  return {
    put: after.filter(({ document, version }) => versions.get(document.name) !== version).map(entry => entry.document),
    removed: [...versions.keys()].filter(name => !names.has(name)),
  }
}
