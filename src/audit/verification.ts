/**
 * Verifies the audit trail in the background, a stretch at a time in the thread of the store: all of it when the gateway
 * starts and once an hour, and new entries in between. The result is for people; `audit verify` does the same at once.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { genesis } from '../storage/chain.ts'
import type { AuditTable, Link } from '../storage/store.ts'

export interface VerificationState {
  /** `running`: the first pass has not reached the end yet. */
  readonly status: 'running' | 'intact' | 'broken'
  /** Seq of the last unchanged entry; 0 when there is none. */
  readonly verifiedTo: number
  /** Hash of that entry: kept elsewhere, it also reveals a trail that was cut off or rewritten. */
  readonly lastHash: string
  /** Last time at which the end was reached, milliseconds since the epoch. */
  readonly verifiedAt: number | null
  /** Seq of the first entry that is missing or was changed. */
  readonly firstBroken: number | null
  readonly why: string | null
}

export interface TrailVerification {
  /** Call about every second: verifies one stretch, when one is due. Rejects when the store cannot be read. */
  step(): Promise<void>
  state(): VerificationState
}

export interface VerificationParts {
  readonly store: { readonly audit: Pick<AuditTable, 'verify'> }
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
}

/** Entries of one stretch: some milliseconds of the store. */
const stretch = 250
/** Time between two readings of new entries, and between two passes over the whole trail, milliseconds. */
const newMs = 10_000
const passMs = 3_600_000

const start: Link = { seq: 0, hash: genesis }

export function createVerification({ store, clock, log }: VerificationParts): TrailVerification {
  let at = start
  let isBusy = false
  let nextAt = Number.NEGATIVE_INFINITY
  let passAt = clock.steady() + passMs
  let state: VerificationState = {
    status: 'running',
    verifiedTo: 0,
    lastHash: genesis,
    verifiedAt: null,
    firstBroken: null,
    why: null,
  }

  const verify = async () => {
    const now = clock.steady()
    if (now >= passAt) {
      at = start
      passAt = now + passMs
    }
    const found = await store.audit.verify(at, stretch)
    if ('firstBroken' in found) {
      if (state.status !== 'broken') log.error({ reason: found.why }, 'the audit trail is not as it was written')
      state = { ...state, status: 'broken', ...found }
      nextAt = passAt
      return
    }
    at = found.last
    if (!found.isEnd) return
    nextAt = now + newMs
    state = {
      ...{ status: 'intact', firstBroken: null, why: null },
      ...{ verifiedTo: at.seq, lastHash: at.hash, verifiedAt: clock.now() },
    }
  }

  return {
    async step() {
      if (isBusy || clock.steady() < nextAt) return
      isBusy = true
      await verify().finally(() => {
        isBusy = false
      })
    },
    state: () => state,
  }
}
