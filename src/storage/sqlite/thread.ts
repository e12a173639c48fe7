/** The main thread's end of the storage thread. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StartupError } from '../../errors.ts'
import { StoreError } from '../store.ts'
import { createClaimMemory } from './claims.ts'
import { PendingCalls } from './pending.ts'
import type { Call, Message, Request, WorkerOptions } from './protocol.ts'

/** One life of a storage thread. */
export interface Thread {
  /** @throws StoreError when the call failed, took too long, or the thread ended before it was answered */
  call(call: Omit<Call, 'id'>): Promise<unknown>
  /** Resolves once all calls before are answered and the file is closed, or when that takes too long. */
  close(): Promise<void>
  /** Resolves when the thread has ended, whatever the cause. */
  readonly ended: Promise<void>
}

export interface ThreadOptions extends Omit<WorkerOptions, 'claims'> {
  /** Called when a write may have been kept although its caller gets a failure. */
  readonly onDoubt: () => void
  /** Told why nothing is written any more until a restart. */
  readonly onFault: (why: string) => void
  /** Told what was done because an older database was brought back. */
  readonly onRestored: (what: string) => void
}

/** A thread that hangs is not waited for any longer at the end, milliseconds. */
const closeMs = 2_000

/** @throws StartupError when the database cannot be opened */
export async function startThread({ onDoubt, onFault, onRestored, ...options }: ThreadOptions): Promise<Thread> {
  // tsc rewrites the extension in imports but not in URLs.
  const file = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
  const claims = createClaimMemory()
  const workerData: WorkerOptions = { ...options, claims }
  const worker = new Worker(file, { workerData, name: 'storage' })
  const pending = new PendingCalls(claims, onDoubt)
  const opened = Promise.withResolvers<void>()
  let cause: unknown
  let closing = false

  worker.on('message', (message: Message) => {
    if (message === 'ready') return opened.resolve()
    if ('refused' in message) return opened.reject(new StartupError(message.refused))
    if ('fault' in message) return onFault(message.fault)
    if ('restored' in message) return onRestored(message.restored)
    for (const reply of message) pending.settle(reply)
    if (pending.size === 0 && !closing) worker.unref()
  })
  worker.on('error', error => {
    cause = error
  })
  const ended = new Promise<void>(resolve => {
    worker.once('exit', () => {
      const message = 'The storage thread ended; whether the last calls were kept is unknown'
      const error = new StoreError(message, { cause, inDoubt: true })
      resolve()
      opened.reject(error)
      pending.rejectAll(error)
    })
  })

  function post(request: Request): void {
    worker.postMessage(request)
    worker.ref()
  }

  await opened.promise
  // An idle store does not keep the process running.
  worker.unref()
  return {
    call: call => pending.add(call, post),
    async close() {
      // Whoever closes waits for it: the process must not end before.
      closing = true
      post('close')
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, closeMs)
      await Promise.race([ended, late.promise])
      clearTimeout(timer)
      worker.unref()
    },
    ended,
  }
}
