/**
 * Calls between two threads over one port: each side asks the other, and answers it. What is posted arrives in order.
 */
import type { MessagePort, Transferable, Worker } from 'node:worker_threads'
import { StoreError } from '../storage/store.ts'

/** Methods by name; each gets what it was called with, and a signal that aborts when its caller no longer waits. */
export type Methods<M> = { readonly [K in keyof M]: Method<M[K]> }
type Method<F> = F extends (...args: infer A) => infer R ? (signal: AbortSignal, ...args: A) => R | Awaited<R> : never

type Message =
  | { readonly tell: string; readonly args: readonly unknown[] }
  | { readonly ask: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly abort: number }
  | { readonly answer: number; readonly value: unknown }
  | { readonly answer: number; readonly failure: { readonly name: string; readonly message: string } }

/** The other thread failed at what it was asked, or ended before it answered. */
class ThreadError extends Error {
  override readonly name = 'ThreadError'
}

/** What a call may carry beside its arguments. */
export interface CallOptions {
  readonly signal?: AbortSignal
  readonly transfer?: readonly Transferable[]
}

export interface Link<Theirs> {
  /** Rejects with StoreError when the store failed over there, else with ThreadError. */
  call<K extends keyof Theirs & string>(
    method: K,
    args: Theirs[K] extends (...args: infer A) => unknown ? A : never,
    options?: CallOptions,
  ): Promise<Theirs[K] extends (...args: never[]) => infer R ? Awaited<R> : never>
  /** A call without a result; an error that it throws is lost. */
  tell<K extends keyof Theirs & string>(
    method: K,
    args: Theirs[K] extends (...args: infer A) => unknown ? A : never,
  ): void
  /** The other side is gone: every call under way rejects, everything done for it is aborted. */
  end(): void
}

type AnyMethod = (signal: AbortSignal, ...args: readonly unknown[]) => unknown

interface Waiting {
  resolve(value: never): void
  reject(error: Error): void
}

/** @param methods what the other side may ask for; what is only told comes to them as well */
export function openLink<Ours, Theirs>(port: MessagePort | Worker, methods: Methods<Ours>): Link<Theirs> {
  const waiting = new Map<number, Waiting>()
  const working = new Map<number, AbortController>()
  let nextId = 0
  let ended = false

  const run = async (method: string, signal: AbortSignal, args: readonly unknown[]) =>
    (methods[method as keyof Ours] as AnyMethod)(signal, ...args)
  async function work(id: number, method: string, args: readonly unknown[]): Promise<Message> {
    const controller = new AbortController()
    working.set(id, controller)
    try {
      return { answer: id, value: await run(method, controller.signal, args) }
    } catch (error) {
      const { name, message } = error as Error
      return { answer: id, failure: { name, message } }
    } finally {
      working.delete(id)
    }
  }

  port.on('message', (message: Message) => {
    if ('ask' in message) {
      void work(message.ask, message.method, message.args).then(answer => {
        if (!ended) port.postMessage(answer, [])
      })
    } else if ('tell' in message) run(message.tell, neverAborts, message.args).catch(() => {})
    else if ('abort' in message) working.get(message.abort)?.abort()
    else settle(waiting, message)
  })

  return {
    call(method, args, { signal, transfer = [] } = {}) {
      if (ended) return Promise.reject(gone())
      const id = nextId++
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        port.postMessage({ ask: id, method, args } satisfies Message, [...transfer])
        const abort = () => waiting.has(id) && port.postMessage({ abort: id } satisfies Message, [])
        signal?.addEventListener('abort', abort)
        if (signal?.aborted === true) abort()
      })
    },
    tell(method, args) {
      if (!ended) port.postMessage({ tell: method, args } satisfies Message, [])
    },
    end() {
      ended = true
      for (const { reject } of waiting.values()) reject(gone())
      waiting.clear()
      for (const controller of working.values()) controller.abort()
    },
  }
}

function settle(waiting: Map<number, Waiting>, message: Extract<Message, { answer: number }>): void {
  const caller = waiting.get(message.answer)
  waiting.delete(message.answer)
  if ('failure' in message) caller?.reject(errorOf(message.failure))
  else caller?.resolve(message.value as never)
}

const neverAborts = new AbortController().signal

const gone = () => new ThreadError('the other thread has ended')

function errorOf({ name, message }: { readonly name: string; readonly message: string }): Error {
  return name === 'StoreError' ? new StoreError(message) : new ThreadError(`${name}: ${message}`)
}
