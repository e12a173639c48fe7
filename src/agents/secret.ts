import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { SecretAnswer, SecretTask } from './secret-worker.ts'

/** bcrypt reads no more. */
const maxBytes = 72

/**
 * What is wrong with a client secret, safe to show; undefined when nothing is. bcrypt repeats its key with a NUL
 * in between, so a NUL would make different secrets equal; unpaired surrogates would all become the same bytes.
 * Text is taken as it is: no Unicode normalisation.
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
  /** Told when the worker thread died. The next task starts a new one. */
  readonly onCrash?: (error: Error) => void
}

/** bcrypt in one worker thread, so that logins never stop the event loop nor take the threads that DNS needs. */
export interface SecretHasher {
  /** bcrypt hash. The secret must have no `secretProblem`. */
  hash(secret: string): Promise<string | Refusal>
  /** Takes the same time without a hash (unknown agent) as with one, whatever the cost that was made with; false then. */
  verify(secret: string, hash: string | undefined): Promise<boolean | Refusal>
  close(): Promise<void>
}

/** Of a bcrypt hash, `$2b$<cost>$...`. */
function costOf(hash: string): number {
  return Number(hash.slice(4, 6))
}

interface Job {
  readonly task: SecretTask
  readonly done: (answer: SecretAnswer | Refusal) => void
}

// Only the extension differs between sources and the built package.
const workerUrl = new URL(`./secret-worker.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url)

export function createSecretHasher(options: SecretHasherOptions): SecretHasher {
  const thread = createThread(options)
  /** The highest cost met: a hash may have been made before the cost was lowered. */
  let slowest = options.cost

  return {
    async hash(secret) {
      const answer = await thread.run('hash', { kind: 'hash', secret, cost: options.cost })
      return typeof answer === 'boolean' ? refuse('internal') : answer
    },
    async verify(secret, hash) {
      const madeWith = hash === undefined ? slowest : costOf(hash)
      slowest = Math.max(slowest, madeWith)
      const answer = await thread.run('verify', { kind: 'verify', secret, hash, madeWith, cost: slowest })
      return typeof answer === 'string' ? refuse('internal') : answer
    },
    close: thread.close,
  }
}

const usualIdleMs = 20_000

function createIdle(ms: number, end: () => void) {
  let timer: NodeJS.Timeout | undefined
  return {
    begin: () => {
      timer = setTimeout(end, ms).unref()
    },
    end: () => clearTimeout(timer),
  }
}

/** One task at a time; registrations before logins, so that a flood of logins does not hold up an admin. */
function createThread(options: SecretHasherOptions) {
  const lanes: Record<'hash' | 'verify', Job[]> = { hash: [], verify: [] }
  let worker: Worker | undefined
  let current: Job | undefined
  let closed = false
  const idle = createIdle(options.idleMs ?? usualIdleMs, () => {
    void worker?.terminate()
    worker = undefined
  })

  function start(): Worker {
    const started = new Worker(workerUrl, { name: 'secrets' })
    started.on('message', (answer: SecretAnswer) => settle(answer))
    started.on('error', (error: Error) => options.onCrash?.(error))
    started.on('exit', () => {
      if (worker !== started) return
      worker = undefined
      settle(refuse(closed ? 'draining' : 'internal'))
    })
    return started
  }

  function settle(answer: SecretAnswer | Refusal): void {
    const job = current
    current = undefined
    // An idle thread must not keep the process alive.
    worker?.unref()
    job?.done(answer)
    next()
  }

  function next(): void {
    if (current !== undefined || closed) return
    current = lanes.hash.shift() ?? lanes.verify.shift()
    if (current === undefined) idle.begin()
    else {
      idle.end()
      worker ??= start()
      worker.ref()
      worker.postMessage(current.task)
    }
  }

  return {
    run(lane: 'hash' | 'verify', task: SecretTask): Promise<SecretAnswer | Refusal> {
      if (closed) return Promise.resolve(refuse('draining'))
      if (lanes[lane].length >= options.queueLength) return Promise.resolve(tooManyLogins())
      return new Promise(done => {
        lanes[lane].push({ task, done })
        next()
      })
    },
    async close(): Promise<void> {
      closed = true
      idle.end()
      for (const job of [...lanes.hash.splice(0), ...lanes.verify.splice(0)]) job.done(refuse('draining'))
      await worker?.terminate()
    },
  }
}

const tooManyLogins = (): Refusal => refuse('too_many_logins', undefined, { headers: ['Retry-After', '1'] })
