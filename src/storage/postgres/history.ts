/**
 * What this gateway knows of the database's past. A failover to a standby that lagged behind, or a dump that was put
 * back, loses what was confirmed: revocations are gone, and what was sent looks unsent. Each turn and each write compares
 * the past that the gateway knows with the one that the database has.
 */
import type { ChainLink } from '../store.ts'

/** What a turn finds of it. */
export interface FoundHistory {
  /** UUID of the history; another one after a loss was accepted. */
  readonly epoch: string
  /** Earlier epochs, whose losses were accepted. */
  readonly past: readonly string[]
  /** Whether all that the gateway knows is there. False as well while a loss is not accepted. */
  readonly isSame: boolean
  /** Why a gateway has stopped all of them. */
  readonly lost: string | null
  /** Newest record of the audit trail. */
  readonly last: ChainLink | null
}

interface Loss {
  /** Epoch of the database that lacks something. */
  readonly epoch: string
  /** What is not there, for people. */
  readonly what: string
}

export class StoreHistory {
  #epoch: string | undefined
  /** Newest record of the audit trail that is known to be committed. */
  #known: ChainLink | undefined
  #loss: Loss | undefined

  get epoch(): string | undefined {
    return this.#epoch
  }

  get known(): ChainLink | undefined {
    return this.#known
  }

  get lost(): string | undefined {
    return this.#loss?.what
  }

  /** Takes what a turn found. `new`: everything must be loaded again; `lost`: nothing of the turn may be used. */
  take(found: FoundHistory): 'same' | 'new' | 'lost' {
    const { epoch, past, isSame, lost, last } = found
    const before = this.#epoch
    const isAccepted = [before, this.#loss?.epoch].some(one => one !== undefined && past.includes(one))
    if (lost !== null || !(isSame || isAccepted)) {
      this.#loss = { epoch, what: lost ?? this.#describe(last) }
      return 'lost'
    }
    this.#loss = undefined
    this.#epoch = epoch
    if (!isSame) this.#known = undefined
    this.saw(epoch, last)
    return isSame ? 'same' : 'new'
  }

  /** Takes the newest record of a commit that was begun in `epoch`. */
  saw(epoch: string | undefined, last: ChainLink | null): void {
    if (last !== null && epoch === this.#epoch && last.seq > (this.#known?.seq ?? 0)) this.#known = last
  }

  #describe(last: ChainLink | null): string {
    const known = this.#known?.seq ?? 0
    const there = last?.seq ?? 0
    return there < known
      ? `the audit trail ends at record ${there}, but record ${known} was there`
      : `up to record ${known} of the audit trail, something that was there is missing or different`
  }
}
