/** Calls that the storage thread has not answered yet, each with a limit of time. */
import { methods } from '../methods.ts'
import { StoreError } from '../store.ts'
import { Claims, mostCalls } from './claims.ts'
import type { Call, Reply } from './protocol.ts'

type Asked = Omit<Call, 'id'>

interface Waiting {
  readonly call: Asked
  readonly timer: NodeJS.Timeout
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Longest time that a call takes, milliseconds: operations of a few calls are then answered within two seconds. */
const callMs = 1_500

export class PendingCalls {
  readonly #claims: Claims
  readonly #onDoubt: () => void
  readonly #waiting = new Map<number, Waiting>()
  /** Ids in use. That of a call that was given up is, until the thread has passed it over. */
  readonly #used = new Set<number>()
  #lastId = 0

  /** @param onDoubt called when a write may have been kept although its caller gets a failure */
  constructor(memory: SharedArrayBuffer, onDoubt: () => void) {
    this.#claims = new Claims(memory)
    this.#onDoubt = onDoubt
  }

  /** Calls that the thread still has to answer. */
  get size(): number {
    return this.#used.size
  }

  /**
   * Sends a call through `post`, and resolves with its result.
   *
   * @throws StoreError when it failed, or took too long
   */
  add(call: Asked, post: (call: Call) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#used.size === mostCalls) {
        reject(new StoreError('Too many calls wait for the storage'))
        return
      }
      const id = this.#freeId()
      this.#claims.open(id)
      post({ ...call, id })
      this.#used.add(id)
      // A reply may have arrived while this thread was busy: it is read before the call is given up.
      const timer = setTimeout(() => setImmediate(() => this.#giveUp(id, timer)), callMs)
      this.#waiting.set(id, { call, timer, resolve, reject })
    })
  }

  settle(reply: Reply): void {
    this.#used.delete(reply.id)
    const waiting = this.#waiting.get(reply.id)
    if (waiting === undefined) return
    this.#waiting.delete(reply.id)
    clearTimeout(waiting.timer)
    if ('failure' in reply) waiting.reject(new StoreError(reply.failure))
    else waiting.resolve(reply.value)
  }

  /** The thread has ended. */
  rejectAll(error: StoreError): void {
    for (const { call, timer, reject } of this.#waiting.values()) {
      clearTimeout(timer)
      if (isWrite(call)) this.#onDoubt()
      reject(error)
    }
    this.#waiting.clear()
    this.#used.clear()
  }

  #giveUp(id: number, timer: NodeJS.Timeout): void {
    const waiting = this.#waiting.get(id)
    if (waiting?.timer !== timer) return
    this.#waiting.delete(id)
    const { table, method } = waiting.call
    const isUndone = this.#claims.giveUp(id)
    const inDoubt = !isUndone && isWrite(waiting.call)
    if (inDoubt) this.#onDoubt()
    const outcome = isUndone ? 'it was not done' : 'whether it was done is unknown'
    waiting.reject(new StoreError(`${table}.${method} took too long; ${outcome}`, { inDoubt }))
  }

  #freeId(): number {
    do this.#lastId = (this.#lastId + 1) % mostCalls
    while (this.#used.has(this.#lastId))
    return this.#lastId
  }
}

function isWrite({ table, method }: Asked): boolean {
  return (methods[table] as Readonly<Record<string, string>>)[method] === 'write'
}
