/**
 * gateway.mark beside the database: how far the audit trail had got. A database that knows less, or another history, is
 * an older one that was brought back.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/** The end of a trail. */
export interface Mark {
  readonly seq: number
  readonly hash: string
}

/** The name of the mark in a data folder. */
export const markFile = 'gateway.mark'

const fileOf = (directory: string): string => join(directory, markFile)

/** Why the database is not the one that the mark was made of; undefined when it is, or there is no mark. */
export function contradiction(directory: string, connection: DatabaseSync): string | undefined {
  const mark = readMark(directory)
  if (mark === undefined) return undefined
  const found = connection.prepare('select hash from audit where seq = ?').get(mark.seq)
  if (found === undefined) return `its audit trail ends before entry ${mark.seq}, which was there`
  return found['hash'] === mark.hash ? undefined : `entry ${mark.seq} of its audit trail is another one`
}

/** Keeps the mark in step with the database. Failing is no harm: an older mark only notices less. */
export function createMarker(directory: string, connection: DatabaseSync): () => void {
  const last = connection.prepare('select seq, hash from audit order by seq desc limit 1')
  let written: unknown = 0
  return () => {
    const mark = last.get()
    if (mark === undefined || mark['seq'] === written) return
    try {
      const draft = `${fileOf(directory)}.new`
      writeFileSync(draft, `${JSON.stringify(mark)}\n`, { mode: 0o600 })
      renameSync(draft, fileOf(directory))
      written = mark['seq']
    } catch {
      // The disk is full, for instance. The next change tries again.
    }
  }
}

function readMark(directory: string): Mark | undefined {
  try {
    const { seq, hash } = JSON.parse(readFileSync(fileOf(directory), 'utf8'))
    return Number.isSafeInteger(seq) && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}
