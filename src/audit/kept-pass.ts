/**
 * How far a pass over the audit trail has got, as it is kept in the store. It is sealed, so that who changes the trail cannot
 * say that it was verified. Who can write the store can put an older note back: so a note counts for a day after its pass
 * began, and only when a gateway starts or takes over; then what was changed meanwhile is found by the next pass.
 */
import type { ChainLink } from '../storage/store.ts'

export interface VerificationState {
  /** `running`: the first pass has not reached the end yet. */
  readonly status: 'running' | 'intact' | 'broken'
  /** Seq of the last unchanged entry when the end was reached last; 0 when it was not. */
  readonly verifiedTo: number
  /** Hash of that entry: kept elsewhere, it also reveals a trail that was cut off or rewritten. */
  readonly lastHash: string
  /** Last time at which the end was reached, milliseconds since the epoch. */
  readonly verifiedAt: number | null
  /** Seq of the first entry that is missing or was changed. */
  readonly firstBroken: number | null
  readonly why: string | null
}

export interface KeptPass {
  /** Everything up to here was verified in this pass. */
  readonly at: ChainLink
  /** When the pass began, milliseconds since the epoch. */
  readonly begun: number
  readonly state: VerificationState
}

export interface PassSeal {
  close(text: string): Uint8Array
  /** Undefined when no gateway sealed it. */
  open(sealed: Uint8Array): string | undefined
}

const countsMs = 86_400_000

/** Undefined when it does not count any more. */
export function parsePass(text: string | undefined, now: number): KeptPass | undefined {
  if (text === undefined) return undefined
  // Sealed by a gateway, as such a note.
  const pass: KeptPass = JSON.parse(text)
  return pass.begun <= now && now - pass.begun < countsMs ? pass : undefined
}
