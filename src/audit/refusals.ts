/**
 * Refusals in the audit trail. A caller can be refused again and again, and each entry is a durable write. So the first
 * refusal of a kind becomes an entry at once, and those of the following minute become one entry with a count.
 */
import type { Clock } from '../clock.ts'
import type { AuditEntry } from '../storage/store.ts'

export interface Refusals {
  /** Resolves when the refusal is on record, or counted for an entry to come. Rejects with a StoreError. */
  note(entry: AuditEntry): Promise<void>
  /** Writes what was counted in windows that are over. Call every second or so. */
  sweep(): Promise<void>
  /** Writes all that was counted. */
  close(): Promise<void>
}

export interface RefusalParts {
  readonly audit: (entry: AuditEntry) => Promise<unknown>
  readonly clock: Clock
}

/** Refusals of one caller for one thing, since the first. */
interface Window {
  readonly since: number
  last: AuditEntry
  /** Refusals without an entry. */
  count: number
}

const windowMs = 60_000
/** Callers and things that are counted at a time; refusals beyond have an entry each. */
const mostWindows = 10_000

export function createRefusals({ audit, clock }: RefusalParts): Refusals {
  const windows = new Map<string, Window>()

  async function write(key: string, window: Window): Promise<void> {
    windows.delete(key)
    const { last, count, since } = window
    if (count === 0) return
    const details = { ...last.details, count, since: new Date(since).toISOString() }
    try {
      await audit({ ...last, details })
    } catch (error) {
      // Keep them, with those that came meanwhile.
      const newer = windows.get(key)
      windows.set(key, { since, last: newer?.last ?? last, count: count + (newer?.count ?? 0) })
      throw error
    }
  }

  const writeAll = async (isOver: (window: Window) => boolean): Promise<void> => {
    for (const [key, window] of windows) if (isOver(window)) await write(key, window)
  }

  return {
    async note(entry) {
      const key = JSON.stringify([entry.actor, entry.action, entry.subject])
      const open = windows.get(key)
      if (open !== undefined && clock.now() - open.since < windowMs) {
        open.count += 1
        open.last = entry
        return
      }
      if (open !== undefined) await write(key, open)
      if (windows.size < mostWindows) windows.set(key, { since: entry.at, last: entry, count: 0 })
      await audit(entry)
    },
    sweep: () => writeAll(({ since }) => clock.now() - since >= windowMs),
    close: () => writeAll(() => true),
  }
}
