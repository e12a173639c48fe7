/** What one gateway knows about the others: which of them may serve without a change. Times are steady milliseconds. */

/** The row of a gateway in the database. */
export interface PeerRow {
  readonly id: string
  /** Random; it changes with each turn. */
  readonly beat: number
  /** Every change up to this number is in force there; -1 while it loads and does not serve. */
  readonly applied: number
}

/** Report of a gateway about itself, for people. */
export interface MemberRow extends PeerRow, GatewayReport {
  readonly name: string
  readonly version: string
  /** When its process started, milliseconds since 1970. */
  readonly started: number
}

/** The part of it that changes while it runs. */
export interface GatewayReport {
  readonly digests: Digests
  /** URLs at which it listens: scheme, address and port. */
  readonly addresses: readonly string[]
}

/** Hashes of what should be the same in all gateways, by its name for people, such as `policy files`. */
export type Digests = Readonly<Record<string, string>>

/** A row, and what the looks at it have shown. */
export interface ObservedPeer<R extends PeerRow> {
  readonly row: R
  /** When its present beat was first read. */
  readonly since: number
  /** Whether it has taken a turn since it was first read. */
  readonly hasTurned: boolean
}

/** A change, and when its commit was answered. */
export interface AwaitedChange {
  readonly change: number
  readonly answered: number
}

/** Clocks of two machines may run one part in a hundred apart. */
const drift = 1.01
/**
 * Time for a fenced gateway to end what is under way. It asks before each byte whether it is fenced, so what is late with a
 * busy gateway is the end of connections on which nothing passes.
 */
const marginMs = 100

/** Time after which a gateway that began no turn has stopped to serve, milliseconds. */
const fencedAfter = (fenceMs: number): number => fenceMs * drift + marginMs

/** Longest fence that can be set, seconds. */
export const longestFence = 60
/** The same for a gateway whose fence is not known, milliseconds. */
export const fencedForSureMs = fencedAfter(longestFence * 1_000)

export class Peers<R extends PeerRow = PeerRow> {
  readonly #self: string
  readonly #fenceMs: number
  readonly #peers = new Map<string, ObservedPeer<R>>()

  /** @param fenceMs how long a gateway serves after the beginning of its last turn; the same in all of them */
  constructor(self: string, fenceMs: number) {
    this.#self = self
    this.#fenceMs = fenceMs
  }

  /** How many gateways there are, this one among them. */
  get count(): number {
    return this.#peers.size
  }

  /** Time after which a gateway that began no turn has stopped to serve. */
  get fencedAfter(): number {
    return fencedAfter(this.#fenceMs)
  }

  get all(): readonly ObservedPeer<R>[] {
    return [...this.#peers.values()]
  }

  /** Whether a gateway has been silent for so long that it does not serve. */
  isFenced(id: string, sent: number): boolean {
    const peer = this.#peers.get(id)
    return peer !== undefined && sent - peer.since > this.fencedAfter
  }

  /** Time at `now` until a gateway without the change serves no more. */
  fencedIn({ answered }: AwaitedChange, now: number): number {
    return answered + this.fencedAfter - now
  }

  /** Takes all rows, from a look whose answer came at `arrived`. */
  saw(rows: readonly R[], arrived: number): void {
    const ids = new Set(rows.map(({ id }) => id))
    for (const id of this.#peers.keys()) if (!ids.has(id)) this.#peers.delete(id)
    for (const row of rows) {
      const known = this.#peers.get(row.id)
      const isSame = known?.row.beat === row.beat
      const hasTurned = known !== undefined && (known.hasTurned || !isSame)
      this.#peers.set(row.id, { row, since: isSame ? known.since : arrived, hasTurned })
    }
  }

  /**
   * Whether no other gateway serves without the change: each has it, loads, or is fenced.
   *
   * @param sent when the last look was sent
   */
  isEverywhere({ change, answered }: AwaitedChange, sent: number): boolean {
    if (sent - answered > this.fencedAfter) return true
    return this.#others().every(
      ({ row, since }) => row.applied < 0 || row.applied >= change || sent - since > this.fencedAfter,
    )
  }

  /** Gateways that have been silent for so long that their rows can go. They are fenced, and register again. */
  gone(sent: number): readonly R[] {
    return this.#others()
      .filter(({ since }) => sent - since > 2 * this.fencedAfter)
      .map(({ row }) => row)
  }

  #others() {
    return [...this.#peers.values()].filter(({ row }) => row.id !== this.#self)
  }
}
