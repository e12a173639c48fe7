/**
 * The audit trail read back: verified link by link, and exported as JSON lines.
 *
 * The chain shows any record that was changed, taken out or put in. It cannot show that the newest records were cut
 * off, or that all of it was rewritten: for that, keep the last `hash` somewhere else.
 */
import { printableJson } from '../base/deceptive.ts'
import { faultOf, genesis, hashOf } from '../storage/chain.ts'
import type { AuditRecord, AuditTable, ChainLink } from '../storage/store.ts'

export type Trail = Pick<AuditTable, 'after'>

export type Verification =
  | { readonly ok: true; readonly entries: number; readonly lastHash: string }
  | { readonly ok: false; readonly firstBroken: number; readonly why: string }

/** Records read at a time. */
const chunk = 500

/** Checks every record from the first on. `firstBroken` is the seq of the first that is missing or not as written. */
export async function verifyTrail(trail: Trail): Promise<Verification> {
  let last: ChainLink = { seq: 0, hash: genesis }
  for await (const record of records(trail)) {
    const why = faultOf(record, last, hashOf(record))
    if (why !== undefined) return { ok: false, firstBroken: last.seq + 1, why }
    last = record
  }
  return { ok: true, entries: last.seq, lastHash: last.hash }
}

/** Each record as one line of JSON with its newline, oldest first. */
export async function* exportTrail(trail: Trail): AsyncGenerator<string, void, void> {
  for await (const record of records(trail)) yield `${printableJson(JSON.stringify(record))}\n`
}

async function* records(trail: Trail): AsyncGenerator<AuditRecord, void, void> {
  // Sequence numbers begin at 1; a forged record below that must be found, too.
  let last = Number.MIN_SAFE_INTEGER
  for (;;) {
    const read = await trail.after(last, chunk)
    yield* read
    const end = read.at(-1)
    if (end === undefined) return
    last = end.seq
  }
}
