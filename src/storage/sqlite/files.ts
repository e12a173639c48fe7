/** gateway.db and its companions: whether they are still the files that were opened. */
import { statSync } from 'node:fs'

interface Opened {
  readonly path: string
  readonly dev: number
  readonly ino: number
  size: number
}

/**
 * Looks at the files of an open database. Returns what tells, each time it is asked, why they are no longer those that
 * were opened; undefined when they are. Writes to a file that was moved or replaced succeed, and are lost.
 */
export function watchFiles(file: string): () => string | undefined {
  const opened = [file, `${file}-wal`, `${file}-shm`].map((path): Opened => {
    const { dev, ino, size } = statSync(path)
    return { path, dev, ino, size }
  })
  return () => {
    for (const one of opened) {
      const problem = problemOf(one, one.path === file)
      if (problem !== undefined) return `${problem}; restart the gateway with the right files`
    }
    return undefined
  }
}

function problemOf(opened: Opened, mustNotShrink: boolean): string | undefined {
  const now = statSync(opened.path, { throwIfNoEntry: false })
  if (now === undefined) return `${opened.path} was moved or deleted`
  if (now.ino !== opened.ino || now.dev !== opened.dev) return `${opened.path} was replaced`
  if (mustNotShrink && now.size < opened.size) return `${opened.path} was cut short`
  opened.size = now.size
  return undefined
}
