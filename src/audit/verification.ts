/**
 * Verifies the audit trail in the background, a stretch at a time in the thread of the store: from the first entry to the
 * end, again each hour or as soon as the end is reached, and new entries in between. Of several gateways one does it. The
 * result is for people; `audit verify` does the same at once.
 */
import type { Log } from '../log/log.ts'
import type { Clock } from '../runtime/clock.ts'
import { genesis } from '../storage/chain.ts'
import type { AuditTable, ChainLink } from '../storage/store.ts'

export interface VerificationProgress extends VerificationState {
  /** Seq that the pass under way has reached. */
  readonly reached: number
}

export type TrailVerification = ReturnType<typeof createVerification>

export interface VerificationParts {
  readonly store: { readonly audit: Pick<AuditTable, 'verify' | 'kept' | 'keep'> }
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  /** Whether this gateway is the one that verifies. */
  readonly leads: () => boolean
  readonly seal: PassSeal
  /** How long this thread has worked, milliseconds; the clock where the answer of the store is the work, in a thread of its own. */
  readonly worked?: (() => number) | undefined
}

/** Entries of one stretch: some milliseconds of the store, in which others wait. */
const stretch = 250
/**
 * Share of the time that is worked at it; share that it may take with the waits for a database, which has work of others too;
 * and the longest time that a step makes up for, milliseconds.
 */
const share = 0.05
const waitShare = 0.25
const maxBehindMs = 2_000
/** Time between two readings of new entries, and from the start of one pass to that of the next, milliseconds. */
const newMs = 10_000
const passMs = 3_600_000
/** Time between two notes of how far the pass has got, and two readings of the notes of another gateway, milliseconds. */
const keepMs = 30_000

const start: ChainLink = { seq: 0, hash: genesis }
const unknown: VerificationState = {
  status: 'running',
  verifiedTo: 0,
  lastHash: genesis,
  verifiedAt: null,
  firstBroken: null,
  why: null,
}

/** Stretches of one step, whatever the clock says. */
const maxStretches = 400

export function createVerification(parts: VerificationParts) {
  const verifier = new Verifier(parts)
  let isBusy = false
  return {
    /** Call about every second: verifies some stretches, when they are due. Rejects when the store cannot be used. */
    async step() {
      if (isBusy) return
      isBusy = true
      await verifier.step().finally(() => {
        isBusy = false
      })
    },
    state: () => verifier.state,
  }
}

class Verifier {
  readonly #parts: VerificationParts
  #pass: KeptPass
  /** The end, or an entry that was changed, was found. */
  #isDone = false
  #isLeading = false
  #isReported = false
  #steppedAt: number
  #nextAt = Number.NEGATIVE_INFINITY
  /** When the note was read or written last, and how far the pass had got then. */
  #kept = { at: Number.NEGATIVE_INFINITY, seq: 0 }

  constructor(parts: VerificationParts) {
    this.#parts = parts
    const { clock } = parts
    this.#pass = { at: start, begun: clock.now(), state: unknown }
    this.#steppedAt = clock.steady() - maxBehindMs
  }

  get state(): VerificationProgress {
    return { ...this.#pass.state, reached: this.#pass.at.seq }
  }

  async step(): Promise<void> {
    const { clock, leads, worked = () => clock.steady() } = this.#parts
    if (!leads()) return this.#follow()
    if (!this.#isLeading) await this.#takeOver()
    const now = clock.steady()
    const sinceMs = Math.min(maxBehindMs, now - this.#steppedAt)
    this.#steppedAt = now
    if (now < this.#nextAt) return
    const age = clock.now() - this.#pass.begun
    if (this.#isDone && (age >= passMs || age < 0)) this.#begin()
    const begun = worked()
    let hasMore = true
    for (let n = 0; hasMore && n < maxStretches; n++) {
      hasMore = await this.#verify()
      if (worked() - begun >= sinceMs * share || clock.steady() - now >= sinceMs * waitShare) break
    }
    const isNews = !hasMore && !this.#isDone
    this.#isDone = !hasMore
    const isOld = clock.steady() - this.#kept.at >= keepMs
    if (isNews || (isOld && this.#pass.at.seq !== this.#kept.seq)) await this.#keep()
  }

  /** Another gateway verifies: this one shows what that has found. */
  async #follow(): Promise<void> {
    this.#isLeading = false
    if (this.#parts.clock.steady() - this.#kept.at >= keepMs) this.#pass = (await this.#read()) ?? this.#pass
  }

  /** Goes on where the gateway before has stopped: that has verified all before. */
  async #takeOver(): Promise<void> {
    this.#begin()
    this.#pass = (await this.#read()) ?? this.#pass
    this.#isLeading = true
  }

  #begin(): void {
    this.#pass = { ...this.#pass, at: start, begun: this.#parts.clock.now() }
    this.#isDone = false
  }

  /** Verifies a stretch. Returns whether there is more. */
  async #verify(): Promise<boolean> {
    const found = await this.#parts.store.audit.verify(this.#pass.at, stretch)
    if ('firstBroken' in found) {
      this.#noteFault(found)
      return false
    }
    this.#pass = { ...this.#pass, at: found.last }
    if (found.isEnd) this.#noteEnd(found.last)
    return !found.isEnd
  }

  #noteFault(found: { readonly firstBroken: number; readonly why: string }): void {
    const { clock, log } = this.#parts
    if (!this.#isReported) log.error({ reason: found.why }, 'the audit trail is not as it was written')
    this.#isReported = true
    this.#pass = { ...this.#pass, state: { ...this.#pass.state, status: 'broken', ...found } }
    this.#nextAt = clock.steady() + Math.max(newMs, this.#pass.begun + passMs - clock.now())
  }

  #noteEnd({ seq, hash }: ChainLink): void {
    const { clock } = this.#parts
    const found = { verifiedTo: seq, lastHash: hash, verifiedAt: clock.now() }
    this.#pass = { ...this.#pass, state: { status: 'intact', ...found, firstBroken: null, why: null } }
    this.#isReported = false
    this.#nextAt = clock.steady() + newMs
  }

  async #read(): Promise<KeptPass | undefined> {
    const { store, clock, seal } = this.#parts
    const sealed = await store.audit.kept()
    this.#kept = { at: clock.steady(), seq: this.#pass.at.seq }
    return sealed && parsePass(seal.open(sealed), clock.now())
  }

  async #keep(): Promise<void> {
    const { store, clock, seal } = this.#parts
    this.#kept = { at: clock.steady(), seq: this.#pass.at.seq }
    await store.audit.keep(seal.close(JSON.stringify(this.#pass)))
  }
}

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

/**
 * How far a pass over the audit trail has got, as it is kept in the store. It is sealed, so that who changes the trail cannot
 * say that it was verified. Who can write the store can put an older note back: so a note counts for a day after its pass
 * began, and only when a gateway starts or takes over; then what was changed meanwhile is found by the next pass.
 */
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
function parsePass(text: string | undefined, now: number): KeptPass | undefined {
  if (text === undefined) return undefined
  // Sealed by a gateway, as such a note.
  const pass: KeptPass = JSON.parse(text)
  return pass.begun <= now && now - pass.begun < countsMs ? pass : undefined
}
