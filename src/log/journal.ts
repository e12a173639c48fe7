import { fstatSync } from 'node:fs'

/** Whether standard output leads to the journal. @param stream JOURNAL_STREAM of systemd.exec(5) */
export function isJournal(stream: string | undefined): boolean {
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(1)
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}
