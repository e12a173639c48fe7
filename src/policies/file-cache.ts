import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { asError } from '../base/as-error.ts'

/** Files of a directory by name, each read again only when it has changed. */
export interface FileCache<T> {
  /** @throws the error of the file system when the directory cannot be read */
  read(): Promise<readonly T[]>
}

interface CacheOptions<T> {
  readonly isWanted: (name: string) => boolean
  readonly load: (path: string) => Promise<T>
  /** The value for a file that cannot be read. The file is tried again the next time. */
  readonly failed: (path: string, error: Error) => T
}

export function createFileCache<T>(directory: string, { isWanted, load, failed }: CacheOptions<T>): FileCache<T> {
  let entries: ReadonlyMap<string, { readonly stamp: string; readonly value: T }> = new Map()
  return {
    async read() {
      const next = new Map<string, { readonly stamp: string; readonly value: T }>()
      const values: T[] = []
      for (const [name, stamp] of await stampsOf(directory, isWanted)) {
        const path = join(directory, name)
        const before = entries.get(name)
        try {
          const value = before?.stamp === stamp ? before.value : await load(path)
          next.set(name, { stamp, value })
          values.push(value)
        } catch (error) {
          values.push(failed(path, asError(error)))
        }
      }
      entries = next
      return values
    },
  }
}

/** Files whose state is asked for at the same time. */
const statsAtOnce = 64

/**
 * The version of each file by name: device, inode, size and times of the file that the name leads to.
 *
 * @throws the error of the file system when the directory cannot be read
 */
export async function stampsOf(
  directory: string,
  isWanted: (name: string) => boolean,
): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(directory)).filter(isWanted).sort()
  const stamps = new Map<string, string>()
  for (let from = 0; from < names.length; from += statsAtOnce) {
    const some = names.slice(from, from + statsAtOnce)
    const found = await Promise.all(some.map(name => stampOf(join(directory, name))))
    for (const [index, name] of some.entries()) stamps.set(name, found[index]!)
  }
  return stamps
}

async function stampOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(path)
    return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`
  } catch (error) {
    return String(asError(error).code)
  }
}
