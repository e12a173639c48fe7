import { append } from '../tables/audit.ts'
import { countWaiting } from '../tables/waiting.ts'
import type { Notes } from '../unit.ts'

/** Writes what an operation has noted, in its transaction. Nobody else writes meanwhile. */
export async function flush({ db, entries, counts, sent }: Notes): Promise<void> {
  await Promise.all(sent)
  await countWaiting(db, counts)
  if (entries.length > 0) await append(db, entries)
}
