/** From the name of an origin to addresses that the gateway may connect to: names are looked up, and egress checks the answers. */
import { literalAddress } from '../base/address.ts'
import type { Origin } from '../base/origin.ts'
import type { Refusal } from '../base/refusals.ts'
import { createFairQueue } from '../limits/fair-queue.ts'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { Egress } from './egress.ts'
import { isPublicName, refuseFailure } from './failure.ts'

/**
 * Addresses of a host name, in the order to try. Rejects when there is none: with the code `ETIMEOUT` when the name
 * servers were silent.
 *
 * @param signal aborted when nobody waits for the answer
 * @param mayFind whether a longer name may be found in its place, in a search domain
 */
export type Lookup = (
  name: string,
  signal: AbortSignal,
  mayFind?: (longer: string) => boolean,
) => Promise<readonly string[]>

/** One answer of the resolver. The same object as long as it is valid, so that users compare by identity. */
export interface Resolution {
  readonly addresses: readonly string[]
  /** Steady milliseconds until which the answer may be used. */
  readonly validUntil: number
  /** There are others, which are not tried. */
  readonly isFirstOnly?: boolean
}

/** Why a look-up failed: no address exists, the name servers did not answer, or too many look-ups wait already. */
export interface ResolveFailure {
  readonly failed: 'name_not_found' | 'name_timeout' | 'name_busy'
}

export type Resolver = ReturnType<typeof createResolver>

export interface ResolverOptions {
  readonly clock: Clock
  readonly lookup: Lookup
  readonly mayFind?: ((longer: string) => boolean) | undefined
  /** Longest use of one answer, milliseconds. */
  readonly validMs?: number
  /** Longest time of a look-up, and longest wait for its turn, milliseconds. */
  readonly timeoutMs?: number
  /** Look-ups under way at once: each has a socket of its own. */
  readonly concurrency?: number
}

/** Names below localhost are this machine, and no question for a DNS server (RFC 6761 section 6.3). */
const loopback: Resolution = { addresses: ['127.0.0.1', '::1'], validUntil: Number.POSITIVE_INFINITY }

const maxNames = 10_000
/** Look-ups of one owner under way at once, and waiting. */
const ownAtOnce = 32
const ownWaiting = 128

type ResolveResult = Resolution | ResolveFailure

export function createResolver(options: ResolverOptions) {
  const { clock, lookup, mayFind, validMs = 30_000, timeoutMs = 5_000, concurrency = 256 } = options
  // The names in use stay, however many others are looked up.
  let answers = new LRUCache<string, Resolution>({ max: maxNames })
  const underway = new Map<string, NameLookup>()
  const queue = createFairQueue({ atOnce: concurrency, atOnceEach: ownAtOnce, waitingEach: ownWaiting })

  const keepIn = (known: typeof answers) => (name: string, addresses: readonly string[]) => {
    const resolution: Resolution = { addresses, validUntil: clock.steady() + validMs }
    known.set(name, resolution)
    return resolution
  }

  const ask = (name: string, owner: string): Promise<ResolveResult> => {
    const known = underway.get(name)
    // One that waits in another owner's line must not wait for all that this owner has before it.
    if (known !== undefined && (!known.waits || known.owners.has(owner))) return known.answer
    const asked = known ?? new NameLookup(name, { lookup, mayFind, timeoutMs, keep: keepIn(answers) })
    asked.owners.add(owner)
    if (known === undefined) {
      underway.set(name, asked)
      void asked.answer.then(() => underway.get(name) === asked && underway.delete(name))
    }
    if (!queue.enter(owner, asked) && known === undefined) asked.refuse()
    return asked.answer
  }

  return {
    /**
     * At once for literal addresses and answers still valid, else one look-up shared by all who ask.
     *
     * @param owner agent that asks; the gateway itself when absent. Each has its own line.
     */
    resolve(host: string, owner = ''): Resolution | Promise<Resolution | ResolveFailure> {
      const known = answers.get(host)
      if (known !== undefined && known.validUntil > clock.steady()) return known
      const literal = literalAddress(host)
      if (literal !== undefined) return keepIn(answers)(host, [literal])
      return host.endsWith('.localhost') ? loopback : ask(host, owner)
    },
    /** Forgets all answers, those of look-ups under way too: `mayFind` says other things now. */
    forget() {
      answers = new LRUCache({ max: maxNames })
      underway.clear()
    },
  }
}

interface NameLookupParts extends Pick<ResolverOptions, 'lookup' | 'mayFind'> {
  readonly timeoutMs: number
  readonly keep: (name: string, addresses: readonly string[]) => Resolution
}

/** The look-up of one name, for all who ask for it at the same time. Its answer never rejects. */
class NameLookup {
  readonly answer: Promise<ResolveResult>
  /** In whose lines it stands. */
  readonly owners = new Set<string>()
  waits = true
  readonly #name: string
  readonly #parts: NameLookupParts
  readonly #outcome = Promise.withResolvers<ResolveResult>()
  readonly #given = new AbortController()
  readonly #timer: NodeJS.Timeout

  constructor(name: string, parts: NameLookupParts) {
    this.#name = name
    this.#parts = parts
    this.answer = this.#outcome.promise
    this.#timer = setTimeout(() => this.#answer({ failed: this.waits ? 'name_busy' : 'name_timeout' }), parts.timeoutMs)
  }

  /** A look-up that is given up frees its place at once, whether or not the system ever answers it. */
  start(done: () => void): void {
    this.waits = false
    this.#timer.refresh()
    void this.answer.then(done)
    const { lookup, mayFind, keep } = this.#parts
    lookup(this.#name, this.#given.signal, mayFind).then(
      found => this.#answer(found.length === 0 ? { failed: 'name_not_found' } : keep(this.#name, found)),
      error => this.#answer({ failed: isTimeout(error) ? 'name_timeout' : 'name_not_found' }),
    )
  }

  /** The queue is full. */
  refuse(): void {
    this.#answer({ failed: 'name_busy' })
  }

  #answer(answer: ResolveResult): void {
    this.waits = false
    clearTimeout(this.#timer)
    this.#outcome.resolve(answer)
    this.#given.abort()
  }
}

const isTimeout = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ETIMEOUT'

/** The addresses of an origin, all of them allowed; or why there are none. */
export type RouteResult = Resolution | Refusal

/**
 * The one way out of the gateway, for agents, approved requests, webhooks and the identity provider alike: an origin is
 * refused by its name, looked up, and refused by its addresses, in this order. Connections then go only to the addresses
 * that were checked (dial.ts).
 */
export type UpstreamRoute = ReturnType<typeof createRoute>

export interface RouteParts {
  readonly egress: Pick<Egress, 'checkHost' | 'checkAddresses'>
  readonly resolver: Resolver
}

export function createRoute({ egress, resolver }: RouteParts) {
  const checked = (origin: Origin, answer: Resolution | ResolveFailure): RouteResult =>
    'failed' in answer ? refuseName(origin, answer) : (egress.checkAddresses(origin, answer.addresses) ?? answer)

  return {
    /** Refuses by name alone. For callers that decide before they call `find`: a name that is refused decides nothing. */
    refuseName: (origin: Origin) => egress.checkHost(origin),
    /**
     * At once if the addresses are known.
     *
     * @param owner agent whose request it is; the gateway itself when absent
     */
    find(origin: Origin, owner?: string): RouteResult | Promise<RouteResult> {
      const refusal = egress.checkHost(origin)
      if (refusal !== undefined) return refusal
      const answer = resolver.resolve(origin.host, owner)
      // While the name was looked up, other settings may have come into force.
      return answer instanceof Promise
        ? answer.then(late => egress.checkHost(origin) ?? checked(origin, late))
        : checked(origin, answer)
    },
    /** For an origin that the operator has configured as such: it may be anywhere. */
    async findTrusted(origin: Origin): Promise<RouteResult> {
      const answer = await resolver.resolve(origin.host)
      return 'failed' in answer ? refuseName(origin, answer) : answer
    },
  }
}

/** A name that is not found says nothing of the upstream that it names at other times: it opens no circuit. */
const refuseName = ({ host }: Origin, { failed }: ResolveFailure): Refusal => refuseFailure(failed, isPublicName(host))
