/**
 * Calls between two threads over one port: each side asks the other, and answers it. Messages arrive in the order they
 * were posted.
 */
import { MessagePort, type Worker } from 'node:worker_threads'
import { asError } from '../base/as-error.ts'

/** Methods by name, as the side that answers has them: they may return what the other side gets a promise of. */
export type Methods<M> = { readonly [K in keyof M]: Method<M[K]> }
type Method<F> = F extends (...args: infer A) => infer R ? (...args: A) => R | Awaited<R> : never

export type ArgumentsOf<F> = F extends (...args: infer A) => unknown ? A : never

/** Names of the methods that can be called from another thread: a function cannot be handed over as an argument. */
type CallableName<M> = {
  [K in keyof M]: M[K] extends (...args: infer A) => unknown
    ? [Extract<A[number], AnyMethod>] extends [never]
      ? K
      : never
    : never
}[keyof M] &
  keyof M &
  string

/** The error of the other side. */
export interface Failure {
  readonly name: string
  readonly message: string
}

type LinkAnswer = { readonly answer: number } & ({ readonly value: unknown } | { readonly failure: Failure })
type LinkMessage =
  | { readonly notify: string; readonly args: readonly unknown[] }
  | { readonly ask: number; readonly method: string; readonly args: readonly unknown[]; readonly aborts: boolean }
  | { readonly abort: number }
  /** Answers that became known together go together: each message wakes the other thread. */
  | readonly LinkAnswer[]

/** The other thread failed at what it was asked, or ended before it answered. */
class ThreadError extends Error {
  override readonly name = 'ThreadError'
}

/** The error of a call unless `errorOf` gives another. */
export function threadError(failure: Failure | undefined): Error {
  return new ThreadError(failure === undefined ? 'the other thread has ended' : `${failure.name}: ${failure.message}`)
}

export interface LinkOptions {
  /** The error of a call that failed on the other side; undefined: the other side ended. ThreadError when absent. */
  readonly errorOf?: (failure: Failure | undefined) => Error
  /** Whether the port keeps the process running only while a call waits for its answer. */
  readonly unrefIdle?: boolean
}

export interface Link<Theirs> {
  /**
   * Rejects with an error of `errorOf`. A signal is the last argument: when it aborts, the one that the method got on the
   * other side does. Ports are handed over.
   */
  call<K extends CallableName<Theirs>>(
    method: K,
    args: ArgumentsOf<Theirs[K]>,
  ): Promise<Theirs[K] extends (...args: never[]) => infer R ? Awaited<R> : never>
  /** Methods of the other side, as an object of the same interface. */
  remote<K extends CallableName<Theirs>>(methods: readonly K[]): Pick<Theirs, K>
  /** A call without a result; an error that it throws is lost. */
  notify<K extends CallableName<Theirs>>(method: K, args: ArgumentsOf<Theirs[K]>): void
  /** The other side is gone: calls that wait reject, and the work done for it is aborted. A worker that exits does this. */
  end(): void
}

type AnyMethod = (...args: readonly unknown[]) => unknown

interface PendingCall {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** The methods of an object that the other side may call. */
export function callable<T, K extends keyof T & string>(object: T, names: readonly K[]): Pick<T, K> {
  // Each name is one of the object's.
  return Object.fromEntries(names.map(name => [name, object[name]])) as Pick<T, K>
}

/** @param methods answer the calls of the other side, those without a result too */
export function openLink<Ours, Theirs>(
  port: MessagePort | Worker,
  methods: Methods<Ours>,
  options: LinkOptions = {},
): Link<Theirs> {
  const run = async (method: string, args: readonly unknown[]) =>
    // The other side knows these methods by their type, and calls no others.
    (methods[method as keyof Ours] as AnyMethod)(...args)
  const work = createWork(port, run)
  const calls = createCalls(port, options)
  port.on('message', (message: LinkMessage) => {
    if ('ask' in message) void work.begin(message)
    else if ('notify' in message) run(message.notify, message.args).catch(() => {})
    else if ('abort' in message) work.abort(message.abort)
    else calls.receive(message)
  })
  const end = (): void => {
    calls.end()
    work.end()
  }
  port.once('exit', end)
  return {
    call: calls.call,
    notify: calls.notify,
    remote: names => {
      const methods = names.map(name => [name, (...args: unknown[]) => calls.call(name, args)])
      // Each method passes on its arguments, and returns a promise of what the method of its name does.
      return Object.fromEntries(methods) as Pick<Theirs, (typeof names)[number]>
    },
    end,
  }
}

/** The calls that this side answers. */
function createWork(port: MessagePort | Worker, run: (method: string, args: readonly unknown[]) => unknown) {
  const working = new Map<number, AbortController>()
  const answers: LinkAnswer[] = []
  let ended = false

  function answer(one: LinkAnswer): void {
    if (answers.push(one) > 1) return
    queueMicrotask(() => {
      const known = answers.splice(0)
      if (!ended) port.postMessage(known, [])
    })
  }

  return {
    async begin({ ask: id, method, args, aborts }: Extract<LinkMessage, { ask: number }>): Promise<void> {
      const controller = aborts ? new AbortController() : undefined
      if (controller !== undefined) working.set(id, controller)
      try {
        answer({ answer: id, value: await run(method, controller === undefined ? args : [...args, controller.signal]) })
      } catch (error) {
        const { name, message } = asError(error)
        answer({ answer: id, failure: { name, message } })
      } finally {
        working.delete(id)
      }
    },
    abort: (id: number) => working.get(id)?.abort(),
    end(): void {
      ended = true
      for (const controller of working.values()) controller.abort()
    },
  }
}

function createCalls(port: MessagePort | Worker, { errorOf = threadError, unrefIdle = false }: LinkOptions) {
  const waiting = new Map<number, PendingCall>()
  let nextId = 0
  let ended = false

  return {
    call(method: string, given: readonly unknown[]): Promise<never> {
      if (ended) return Promise.reject(errorOf(undefined))
      const id = nextId++
      const last = given.at(-1)
      const signal = last instanceof AbortSignal ? last : undefined
      const args = signal === undefined ? given : given.slice(0, -1)
      return new Promise((resolve, reject) => {
        const ask: LinkMessage = { ask: id, method, args, aborts: signal !== undefined }
        port.postMessage(
          ask,
          args.filter(one => one instanceof MessagePort),
        )
        waiting.set(id, { resolve, reject })
        if (unrefIdle) port.ref()
        const abort = () => waiting.has(id) && port.postMessage({ abort: id } satisfies LinkMessage, [])
        signal?.addEventListener('abort', abort)
        if (signal?.aborted === true) abort()
      })
    },
    notify(method: string, args: readonly unknown[]): void {
      if (!ended) port.postMessage({ notify: method, args } satisfies LinkMessage, [])
    },
    receive(answers: readonly LinkAnswer[]): void {
      for (const one of answers) {
        const caller = waiting.get(one.answer)
        waiting.delete(one.answer)
        if ('failure' in one) caller?.reject(errorOf(one.failure))
        else caller?.resolve(one.value)
      }
      if (unrefIdle && waiting.size === 0) port.unref()
    },
    end(): void {
      ended = true
      for (const { reject } of waiting.values()) reject(errorOf(undefined))
      waiting.clear()
    },
  }
}
