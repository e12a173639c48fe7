/**
 * Entries of the audit trail that a caller can cause again and again, such as refusals. Each is a durable write, and is kept
 * for good. So the first of a kind becomes an entry at once, and those of the following minute become one entry with a count.
 */
import type { Clock } from '../runtime/clock.ts'
import type { AuditEntry } from '../storage/store.ts'

export type Repeats = ReturnType<typeof createRepeats>

interface RepeatParts {
  readonly audit: (entry: AuditEntry) => Promise<unknown>
  readonly clock: Clock
}

/** Entries of one actor and action about one thing, since the first. */
interface RepeatWindow {
  readonly since: number
  readonly ms: number
  last: AuditEntry
  /** Those without an entry. */
  count: number
}

const minuteMs = 60_000
/** Actors and things that are counted at a time; those beyond have an entry each. */
const maxWindows = 10_000

export function createRepeats({ audit, clock }: RepeatParts) {
  const windows = new Map<string, RepeatWindow>()

  const isOver = ({ since, ms }: RepeatWindow): boolean => clock.now() - since >= ms

  async function write(key: string, window: RepeatWindow): Promise<void> {
    windows.delete(key)
    const { last, count, since, ms } = window
    if (count === 0) return
    const details = { ...last.details, count, since: new Date(since).toISOString() }
    try {
      await audit({ ...last, details })
    } catch (error) {
      // Keep them, with those that came meanwhile.
      const newer = windows.get(key)
      windows.set(key, { since, ms, last: newer?.last ?? last, count: count + (newer?.count ?? 0) })
      throw error
    }
  }

  const writeAll = async (isOver: (window: RepeatWindow) => boolean): Promise<void> => {
    for (const [key, window] of windows) if (isOver(window)) await write(key, window)
  }

  return {
    /**
     * Resolves when the entry is on record, or counted for one to come. Rejects with a StoreError.
     *
     * @param windowMs time for which further ones are counted, from the first of a kind; a minute when absent
     */
    async note(entry: AuditEntry, windowMs = minuteMs) {
      const key = JSON.stringify([entry.actor, entry.action, entry.subject])
      const open = windows.get(key)
      if (open !== undefined && !isOver(open)) {
        open.count += 1
        open.last = entry
        return
      }
      if (open !== undefined) await write(key, open)
      if (windows.size < maxWindows) windows.set(key, { since: entry.at, ms: windowMs, last: entry, count: 0 })
      await audit(entry)
    },
    /** Writes what was counted in windows that are over. Call every second or so. */
    sweep: () => writeAll(isOver),
    /** Writes all that was counted. */
    close: () => writeAll(() => true),
  }
}
