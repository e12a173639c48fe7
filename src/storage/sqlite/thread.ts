/** The main thread's end of the storage thread. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StartupError } from '../../errors.ts'
import { StoreError } from '../store.ts'
import type { Call, Message, Reply, Request, WorkerOptions } from './protocol.ts'

/** One life of a storage thread. */
export interface Thread {
  /** @throws StoreError when the call failed, or the thread ended before it was answered */
  call(call: Omit<Call, 'id'>): Promise<unknown>
  /** Resolves once all calls before are answered and the file is closed. */
  close(): Promise<void>
  /** Resolves when the thread has ended, whatever the cause. */
  readonly ended: Promise<void>
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** @throws StartupError when the database cannot be opened */
export async function startThread(options: WorkerOptions): Promise<Thread> {
  // tsc rewrites the extension in imports but not in URLs.
  const file = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
  const worker = new Worker(file, { workerData: options, name: 'storage' })
  const pending = new Map<number, Waiting>()
  let nextId = 0
  let cause: unknown
  let closing = false
  const opened = Promise.withResolvers<void>()

  worker.on('message', (message: Message) => {
    if (message === 'ready') return opened.resolve()
    if ('refused' in message) return opened.reject(new StartupError(message.refused))
    for (const reply of message) settle(reply)
  })
  worker.on('error', error => {
    cause = error
  })
  const ended = new Promise<void>(resolve => {
    worker.once('exit', () => {
      const error = new StoreError('The storage thread ended; whether the last calls were kept is unknown', { cause })
      resolve()
      opened.reject(error)
      for (const { reject } of pending.values()) reject(error)
      pending.clear()
    })
  })

  function settle(reply: Reply): void {
    const waiting = pending.get(reply.id)
    pending.delete(reply.id)
    if (pending.size === 0 && !closing) worker.unref()
    if ('failure' in reply) waiting?.reject(new StoreError(reply.failure))
    else waiting?.resolve(reply.value)
  }

  function post(request: Request): void {
    worker.postMessage(request)
    worker.ref()
  }

  await opened.promise
  // An idle store does not keep the process running.
  worker.unref()
  return {
    call: call =>
      new Promise((resolve, reject) => {
        const id = nextId++
        post({ ...call, id })
        pending.set(id, { resolve, reject })
      }),
    close: () => {
      // Whoever closes waits for it: the process must not end before.
      closing = true
      post('close')
      return ended
    },
    ended,
  }
}
