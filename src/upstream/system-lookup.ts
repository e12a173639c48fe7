import { lookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { createFairQueue } from '../limits/fair-queue.ts'
import { candidates, createNameRules, type NameRules } from './name-rules.ts'
import type { Lookup } from './resolve.ts'

export interface SystemLookupParts {
  readonly rules: () => NameRules
  /** Name servers, `address:port`; those of resolv.conf when absent. */
  readonly servers?: readonly string[]
  /** Asks the system in its own, blocking way. */
  readonly fallback: Lookup
}

/** Time for the first answer of a server, milliseconds, and number of tries. */
const timeout = 1_500
const tries = 2

/** Answers of name servers that know that the name has no such address. */
const negative: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND'])

/**
 * Looks names up by the rules of the system: hosts file, then DNS over UDP with its search domains. getaddrinfo does the
 * same, but holds a thread for each name, of which there are four: a few dead names would stop all others. It is asked
 * only where names are also found in other ways. Each look-up has a socket, and so a port, of its own.
 */
export function createSystemLookup({ rules, servers, fallback }: SystemLookupParts): Lookup {
  return async (name, signal, mayFind = () => true) => {
    const now = rules()
    const listed = now.hosts.get(name) ?? (name === 'localhost' ? ['127.0.0.1', '::1'] : undefined)
    if (listed !== undefined) return listed
    const all = candidates(name, now)
    const names = all.filter(found => found === name || mayFind(found))
    try {
      return await askServers(names, servers, signal)
    } catch (error) {
      if (!now.hasOtherSources || signal.aborted) throw error
      // The dot at the end keeps the system from its search domains.
      return fallback(names.length === all.length ? name : `${name}.`, signal)
    }
  }
}

/** The first name that has an address. Silent servers are the reason only when no name was found. */
async function askServers(names: readonly string[], servers: readonly string[] | undefined, signal: AbortSignal) {
  const resolver = new Resolver({ timeout, tries })
  if (servers !== undefined) resolver.setServers(servers)
  const giveUp = () => resolver.cancel()
  signal.addEventListener('abort', giveUp)
  try {
    let failure: unknown
    for (const name of names) {
      const { addresses, error } = await askBoth(resolver, name)
      if (addresses.length > 0) return addresses
      if (failure === undefined || negative.has(codeOf(failure))) failure = error
      if (signal.aborted) break
    }
    throw failure
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** The family that this machine can reach comes first (RFC 6724 asks for as much). */
async function askBoth(resolver: Resolver, name: string) {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found4 = v4.status === 'fulfilled' ? v4.value : []
  const found6 = v6.status === 'fulfilled' ? v6.value : []
  const errors = [v4, v6].flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
  const error = errors.find(reason => !negative.has(codeOf(reason))) ?? errors[0]
  return { addresses: hasIPv6() ? [...found6, ...found4] : [...found4, ...found6], error }
}

const hasIPv6 = (): boolean =>
  Object.values(networkInterfaces()).some(list =>
    list?.some(({ family, internal, address }) => family === 'IPv6' && !internal && !address.startsWith('fe80:')),
  )

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

/** libuv lets as many look-ups run at once: half of its threads. */
const blockingAtOnce = 2
const blockingWaiting = 64

/** getaddrinfo, in a line of its own: a look-up cannot be stopped once it runs. */
function createBlockingLookup(): Lookup {
  const queue = createFairQueue({ atOnce: blockingAtOnce, atOnceEach: blockingAtOnce, waitingEach: blockingWaiting })
  return (name, signal) =>
    new Promise((resolve, reject) => {
      const work = {
        get waits() {
          return !signal.aborted
        },
        start(done: () => void) {
          lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
            done()
            if (error === null) resolve(found.map(({ address }) => address))
            else reject(error)
          })
        },
      }
      if (!queue.enter('', work)) reject(new Error('too many names wait for the system'))
      signal.addEventListener('abort', () => reject(signal.reason))
    })
}

const blocking = createBlockingLookup()

/** Where names are found in ways that are not those of resolv.conf, the system itself is asked. */
export const systemLookup: Lookup =
  process.platform === 'linux' ? createSystemLookup({ rules: createNameRules(), fallback: blocking }) : blocking
