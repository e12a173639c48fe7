/** Checks that gateway.db and its companions are still the opened files, and that no other program wrote to them. */
import { type BigIntStats, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

/** The log is copied into gateway.db after so many commits, or when it has grown by so many bytes. */
const maxCommits = 64
const maxLogBytes = 4_194_304n

/**
 * Watches the files of an open database. Writes to a file that was moved, replaced or overwritten succeed, and are lost.
 *
 * Commits go to the log (gateway.db-wal). gateway.db itself changes only when the log is copied into it, which SQLite
 * leaves to this class. So any other change of gateway.db comes from another program.
 */
export class DatabaseFiles {
  readonly #connection: DatabaseSync
  readonly #file: string
  readonly #log: string
  readonly #opened: ReadonlyMap<string, BigIntStats>
  /** State of gateway.db after the last write of this process. */
  #left: BigIntStats
  /** Bytes of the log when it was last copied, and commits since. */
  #logBytes = 0n
  #commits = 0

  constructor(connection: DatabaseSync, file: string) {
    this.#connection = connection
    this.#file = file
    this.#log = `${file}-wal`
    connection.exec('pragma wal_autocheckpoint = 0')
    connection.exec('pragma wal_checkpoint(passive)')
    this.#opened = new Map([file, this.#log, `${file}-shm`].map(path => [path, statSync(path, { bigint: true })]))
    this.#left = statSync(file, { bigint: true })
  }

  /** Why the files are not those that were opened; undefined when they are. */
  problem(): string | undefined {
    for (const [path, opened] of this.#opened) {
      const problem = this.#problemOf(path, opened)
      if (problem !== undefined) return `${problem}; restart the gateway with the right files`
    }
    return undefined
  }

  /**
   * Call it after each commit to the log. Copies the log when it is long; parts that another process still reads stay.
   *
   * @throws Error of SQLite when the copy fails; the commit holds all the same
   */
  committed(): void {
    this.#commits += 1
    const { size } = statSync(this.#log, { bigint: true })
    if (this.#commits < maxCommits && size - this.#logBytes <= maxLogBytes) return
    try {
      this.#connection.exec('pragma wal_checkpoint(passive)')
      this.#commits = 0
      this.#logBytes = size
    } finally {
      this.#left = statSync(this.#file, { bigint: true })
    }
  }

  #problemOf(path: string, opened: BigIntStats): string | undefined {
    const now = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (now === undefined) return `${path} was moved or deleted`
    if (now.ino !== opened.ino || now.dev !== opened.dev) return `${path} was replaced`
    if (path !== this.#file) return undefined
    if (now.size < this.#left.size) return `${path} was cut short`
    return now.mtimeNs === this.#left.mtimeNs ? undefined : `${path} was overwritten`
  }
}
