/**
 * The audit trail read back: verified link by link, and exported as JSON lines.
 *
 * The chain shows any record that was changed, taken out or put in. It cannot show that the newest records were cut
 * off, or that all of it was rewritten: for that, keep the last `hash` somewhere else.
 */
import { printableJson } from '../base/deceptive.ts'
import { genesis, hashOf } from '../storage/chain.ts'
import type { AuditRecord, AuditTable } from '../storage/store.ts'

type Trail = Pick<AuditTable, 'after'>

export type Verification =
  | { readonly ok: true; readonly entries: number; readonly lastHash: string }
  | { readonly ok: false; readonly firstBroken: number; readonly why: string }

/** Records read at a time. */
const chunk = 500

/** Checks every record from the first on. `firstBroken` is the seq of the first that is missing or not as written. */
export async function verifyTrail(trail: Trail): Promise<Verification> {
  let seq = 0
  let previous = genesis
  for await (const record of records(trail)) {
    seq += 1
    const why = fault(record, seq, previous)
    if (why !== undefined) return { ok: false, firstBroken: seq, why }
    previous = record.hash
  }
  return { ok: true, entries: seq, lastHash: previous }
}

function fault(record: AuditRecord, seq: number, previous: string): string | undefined {
  if (record.seq !== seq) return `record ${seq} is missing`
  if (record.previous !== previous) return `record ${seq} does not follow from the one before it`
  if (record.hash !== hashOf(record)) return `record ${seq} was changed after it was written`
  return undefined
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
