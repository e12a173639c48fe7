/** Backups of a data folder, made while the gateway runs, and their way back. */
import { closeSync, copyFileSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StartupError } from '../../base/refusals.ts'
import { assertSound, assertUnused, backupVersion, claimFolder } from './database.ts'

/** Files that a gateway needs to start, beside its database. */
const companions = ['signing.key', 'bootstrap.json']
/** All that a gateway keeps in its data folder, but for the lock. */
const kept = ['gateway.db', 'gateway.db-wal', 'gateway.db-shm', 'gateway.mark', ...companions]

/**
 * Copies a snapshot of the data folder into `target`, which must be new or empty. Returns the names of the files.
 *
 * @throws StartupError when it cannot
 */
export function backUp(directory: string, target: string): readonly string[] {
  const file = join(directory, 'gateway.db')
  if (!existsSync(file)) throw new StartupError(`${file} does not exist: there is nothing to back up.`)
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 })
    if (readdirSync(target).length > 0) throw new StartupError(`${target} is not empty. Name a new folder.`)
    copyDatabase(file, join(target, 'gateway.db'))
    const others = companions.filter(name => existsSync(join(directory, name)))
    for (const name of others) copyDurably(join(directory, name), join(target, name))
    syncPath(target)
    return ['gateway.db', ...others]
  } catch (error) {
    throw failure(`${directory} cannot be backed up`, error)
  }
}

/** One transaction reads all of it. The copy is marked: the gateway that starts on it knows that it is a backup. */
function copyDatabase(from: string, to: string): void {
  // Made first, so that only its owner can read it.
  closeSync(openSync(to, 'wx', 0o600))
  const source = new DatabaseSync(from, { readOnly: true, timeout: 2_000 })
  try {
    source.prepare('vacuum into ?').run(to)
  } finally {
    source.close()
  }
  const copy = new DatabaseSync(to)
  copy.exec(`pragma user_version = ${backupVersion}`)
  copy.close()
  syncPath(to)
}

/**
 * Puts a backup in the place of the data folder. What was there is kept in a folder of its own, whose path is returned;
 * undefined when nothing was there.
 *
 * @param stamp name for that folder
 * @throws StartupError when a gateway runs on the folder, or the backup is not sound
 */
export async function bringBack(source: string, directory: string, stamp: string): Promise<string | undefined> {
  const file = join(source, 'gateway.db')
  if (!existsSync(file)) throw new StartupError(`${source} contains no backup: gateway.db is missing.`)
  await assertSound(file)
  const lock = claimFolder(directory)
  try {
    if (existsSync(join(directory, 'gateway.db'))) assertUnused(join(directory, 'gateway.db'))
    const before = setAside(directory, join(directory, `before-restore-${stamp}`))
    // The database comes last: when it is there, the rest is, too.
    for (const name of [...companions, 'gateway.db']) {
      if (existsSync(join(source, name))) copyDurably(join(source, name), join(directory, name))
    }
    syncPath(directory)
    return before
  } catch (error) {
    throw failure(`${source} cannot be brought back`, error)
  } finally {
    lock.close()
  }
}

function setAside(directory: string, folder: string): string | undefined {
  const names = kept.filter(name => existsSync(join(directory, name)))
  if (names.length === 0) return undefined
  mkdirSync(folder, { mode: 0o700 })
  for (const name of names) renameSync(join(directory, name), join(folder, name))
  return folder
}

/** Written under another name and renamed: after a crash the file is complete or absent. */
function copyDurably(from: string, to: string): void {
  const draft = `${to}.new`
  closeSync(openSync(draft, 'w', 0o600))
  copyFileSync(from, draft)
  syncPath(draft)
  renameSync(draft, to)
}

function syncPath(path: string): void {
  const opened = openSync(path, 'r')
  fsyncSync(opened)
  closeSync(opened)
}

function failure(what: string, error: unknown): unknown {
  if (error instanceof StartupError) return error
  return new StartupError(`${what}: ${error instanceof Error ? error.message : String(error)}.`)
}
