import { randomBytes } from 'node:crypto'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Refusal, refuse } from '../base/refusals.ts'
import { type Link, openLink } from '../runtime/link.ts'
import type { SecretCalls } from './secret-worker.ts'

/** bcrypt reads no more. */
const maxBytes = 72

/**
 * The mistake in a client secret, safe to show; undefined without one. bcrypt repeats its key with a NUL in between, so a
 * NUL would make different secrets equal; unpaired surrogates would all become the same bytes. There is no Unicode
 * normalisation.
 */
export function secretProblem(secret: string): string | undefined {
  const bytes = Buffer.byteLength(secret)
  if (bytes < 1 || bytes > maxBytes) return `must be 1 to ${maxBytes} bytes of UTF-8`
  if (secret.includes('\0')) return 'must not hold a NUL character'
  if (!secret.isWellFormed()) return 'must be well-formed Unicode'
  return undefined
}

/** A new client secret of 256 random bits. */
export const generateSecret = (): string => randomBytes(32).toString('base64url')

export interface SecretHasherOptions {
  /** bcrypt cost, 4 to 15. */
  readonly cost: number
  /** Secrets that may wait to be verified; more are refused. As many again may wait to be hashed. */
  readonly queueLength: number
  /** An idle thread gives its memory back, some 20 MiB, and the next task starts a new one; 20 s when absent. */
  readonly idleMs?: number
  /** Called when the worker thread died. The next task starts a new one. */
  readonly onCrash?: (error: Error) => void
}

/** bcrypt in one worker thread, so that logins never stop the event loop nor take the threads that DNS needs. */
export type SecretHasher = ReturnType<typeof createSecretHasher>

/** The cost in a bcrypt hash, `$2b$<cost>$...`. */
function costOf(hash: string): number {
  return Number(hash.slice(4, 6))
}

// Only the extension differs between sources and the built package.
const workerUrl = new URL(`./secret-worker${extname(import.meta.url)}`, import.meta.url)

export function createSecretHasher(options: SecretHasherOptions) {
  const thread = createThread(options)
  /** The highest cost met: a hash may have been made before the cost was lowered. */
  let slowest = options.cost

  return {
    /** bcrypt hash. The secret must have no `secretProblem`. */
    hash: (secret: string) => thread.run('hash', calls => calls.call('hash', [secret, options.cost])),
    /** False without a hash (unknown agent). Takes the same time with and without one, at any cost of the hash. */
    verify(secret: string, hash: string | undefined): Promise<boolean | Refusal> {
      const madeWith = hash === undefined ? slowest : costOf(hash)
      slowest = Math.max(slowest, madeWith)
      const against = { hash, madeWith, cost: slowest }
      return thread.run('verify', calls => calls.call('verify', [secret, against]))
    },
    close: thread.close,
  }
}

const usualIdleMs = 20_000

/** Undefined: the hasher is closed. */
type HashJob = (calls: Link<SecretCalls> | undefined) => Promise<unknown>

/** One task at a time; registrations before logins, so that a flood of logins does not hold up an admin. */
function createThread({ queueLength, idleMs = usualIdleMs, onCrash }: SecretHasherOptions) {
  const queues: Record<'hash' | 'verify', HashJob[]> = { hash: [], verify: [] }
  let worker: Worker | undefined
  let calls: Link<SecretCalls> | undefined
  let working = false
  let closed = false
  let idle: NodeJS.Timeout | undefined

  function start(): Link<SecretCalls> {
    const started = new Worker(workerUrl, { name: 'secrets' })
    started.on('error', (error: Error) => onCrash?.(error))
    started.on('exit', () => {
      if (worker === started) worker = calls = undefined
    })
    worker = started
    // An idle thread does not keep the process running.
    return openLink<object, SecretCalls>(started, {}, { unrefIdle: true })
  }

  function end(): Promise<unknown> | undefined {
    const ending = worker?.terminate()
    worker = calls = undefined
    return ending
  }

  async function work(): Promise<void> {
    working = true
    clearTimeout(idle)
    for (let job = next(); job !== undefined; job = next()) {
      if (!closed) calls ??= start()
      await job(calls)
    }
    working = false
    if (!closed) idle = setTimeout(end, idleMs).unref()
  }
  const next = () => queues.hash.shift() ?? queues.verify.shift()

  return {
    run<T>(kind: 'hash' | 'verify', task: (calls: Link<SecretCalls>) => Promise<T>): Promise<T | Refusal> {
      if (closed) return Promise.resolve(refuse('draining'))
      if (queues[kind].length >= queueLength) return Promise.resolve(tooManyLogins())
      return new Promise(resolve => {
        const failed = () => refuse(closed ? 'draining' : 'internal')
        queues[kind].push(link =>
          (link === undefined ? Promise.resolve(failed()) : task(link).catch(failed)).then(resolve),
        )
        if (!working) void work()
      })
    },
    async close(): Promise<void> {
      closed = true
      clearTimeout(idle)
      await end()
    },
  }
}

const tooManyLogins = (): Refusal => refuse('too_many_logins')
