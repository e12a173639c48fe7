import { lookup } from 'node:dns'
import { literalAddress } from '../base/address.ts'
import type { Clock } from '../clock.ts'

/** Addresses of a host name, in the order to try. */
export type Lookup = (name: string) => Promise<readonly string[]>

/** The system's resolver: hosts file, search domains and all (getaddrinfo). */
export const systemLookup: Lookup = name =>
  new Promise((resolve, reject) => {
    lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
      if (error === null) resolve(found.map(entry => entry.address))
      else reject(error)
    })
  })

/** One answer of the resolver. The same object as long as it is valid, so that users compare by identity. */
export interface Resolution {
  readonly addresses: readonly string[]
  /** Steady milliseconds until which the answer may be used. */
  readonly validUntil: number
}

/** The name could not be resolved; `timedOut` tells a silent resolver from a negative answer. */
export interface ResolveFailure {
  readonly failed: 'notFound' | 'timedOut' | 'busy'
}

export interface Resolver {
  /** At once for literal addresses and answers still valid, else one look-up shared by all who ask. */
  resolve(host: string): Resolution | Promise<Resolution | ResolveFailure>
}

export interface ResolverOptions {
  readonly clock: Clock
  readonly lookup: Lookup
  /** Longest use of one answer, milliseconds. */
  readonly validMs?: number
  readonly timeoutMs?: number
  /** Look-ups under way at once: getaddrinfo holds a thread of libuv's pool, and token checks need some too. */
  readonly concurrency?: number
}

/** Names below localhost are this machine, and no question for a DNS server (RFC 6761 section 6.3). */
const loopback: Resolution = { addresses: ['127.0.0.1', '::1'], validUntil: Number.POSITIVE_INFINITY }

const maxNames = 10_000
const maxWaiting = 1_000

export function createResolver(options: ResolverOptions): Resolver {
  const { clock, validMs = 30_000, timeoutMs = 5_000, concurrency = 2 } = options
  const answers = new Map<string, Resolution>()
  const underway = new Map<string, Promise<Resolution | ResolveFailure>>()
  const line = createLine(concurrency)

  const keep = (name: string, addresses: readonly string[]): Resolution => {
    if (answers.size >= maxNames) answers.delete(answers.keys().next().value as string)
    const resolution = { addresses, validUntil: clock.steady() + validMs }
    answers.set(name, resolution)
    return resolution
  }

  const ask = async (name: string): Promise<Resolution | ResolveFailure> => {
    if (line.waiting() >= maxWaiting) return { failed: 'busy' }
    const { promise: silence, resolve: giveUp } = Promise.withResolvers<'silence'>()
    const timer = setTimeout(giveUp, timeoutMs, 'silence')
    try {
      const found = await Promise.race([line.run(() => options.lookup(name)), silence])
      if (found === 'silence') return { failed: 'timedOut' }
      return found.length === 0 ? { failed: 'notFound' } : keep(name, found)
    } catch {
      // Which of the resolver's errors it was is nothing an agent should learn; all of them mean: no address.
      return { failed: 'notFound' }
    } finally {
      clearTimeout(timer)
      underway.delete(name)
    }
  }

  return {
    resolve(host) {
      const known = answers.get(host)
      if (known !== undefined && known.validUntil > clock.steady()) return known
      const literal = literalAddress(host)
      if (literal !== undefined) return keep(host, [literal])
      if (host.endsWith('.localhost')) return loopback
      const pending = underway.get(host) ?? ask(host)
      underway.set(host, pending)
      return pending
    },
  }
}

/** Lets so many run at once; the others wait in line. */
function createLine(concurrency: number) {
  const queue: (() => void)[] = []
  let running = 0
  const start = <T>(work: () => Promise<T>): Promise<T> => {
    running += 1
    return work().finally(() => {
      running -= 1
      queue.shift()?.()
    })
  }
  return {
    waiting: () => queue.length,
    run: <T>(work: () => Promise<T>): Promise<T> =>
      running < concurrency
        ? start(work)
        : new Promise((resolve, reject) => queue.push(() => start(work).then(resolve, reject))),
  }
}
