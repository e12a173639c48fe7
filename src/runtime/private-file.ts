import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { link, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartupError } from '../base/refusals.ts'

/**
 * Text of a file that holds a secret; undefined when there is none.
 * Rejects with StartupError when others than the owner may read it, or it cannot be read. A group of this process may read a
 * file of root, as Kubernetes (`fsGroup`) and systemd give it.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r')
    try {
      // Of the file that is read: a link may be swapped meanwhile.
      if (!isPrivate(await file.stat(), groupsOfProcess())) {
        throw new StartupError(`${path}: others can read this secret. Run: chmod 600 ${path}`)
      }
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw asStartupError(error, path)
  }
}

/** Whether nobody but its owner can read it, or a group of `groups` if it belongs to root. */
export function isPrivate({ mode, uid, gid }: Pick<Stats, 'mode' | 'uid' | 'gid'>, groups: readonly number[]): boolean {
  const isOfGroup = (mode & 0o037) === 0 && uid === 0 && groups.includes(gid)
  return (mode & 0o077) === 0 || isOfGroup
}

const groupsOfProcess = (): readonly number[] => [process.getegid?.() ?? -1, ...(process.getgroups?.() ?? [])]

/**
 * Writes a file that only its owner can read, whole or not at all, and on disk when this resolves.
 * With `replace: false` a file that is already there stays and the answer is false.
 */
export async function writePrivateFile(path: string, text: string, replace: boolean): Promise<boolean> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeDurably(temporary, text)
    if (replace) await rename(temporary, path)
    else await link(temporary, path)
    await syncFolder(dirname(path))
    return true
  } catch (error) {
    if (!replace && codeOf(error) === 'EEXIST') return false
    throw asStartupError(error, path)
  } finally {
    await rm(temporary, { force: true })
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A new name is durable only when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

function asStartupError(error: unknown, path: string): unknown {
  if (error instanceof StartupError) return error
  return new StartupError(`${path}: cannot be read or written (${String(codeOf(error) ?? error)})`)
}
