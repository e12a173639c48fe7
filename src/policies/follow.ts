import { type FSWatcher, watch } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, parse } from 'node:path'
import { asError } from '../base/as-error.ts'

interface FollowOptions {
  readonly isWanted: (name: string) => boolean
  readonly changed: () => void
  /** Called once for each reason why something is not followed. */
  readonly failed: (error: Error) => void
}

/** Follows a directory by every name that leads to it and to its files. It does not keep the process alive. */
export function createFollower(directory: string, options: FollowOptions) {
  const watchers = new Map<string, FSWatcher>()
  const reported = new Set<string>()
  let trails: Trails = { real: undefined, names: new Map() }

  function fail(error: NodeJS.ErrnoException): void {
    // A missing file or folder is watched for through its parent.
    if (error.code === 'ENOENT' || reported.has(error.message)) return
    reported.add(error.message)
    options.failed(error)
  }

  function open(path: string): FSWatcher | undefined {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        const isOnTrail = name === null || trails.names.get(path)?.has(name) === true
        if (isOnTrail || (path === trails.real && options.isWanted(name))) options.changed()
      })
      return watcher.on('error', fail)
    } catch (error) {
      fail(asError(error))
      return undefined
    }
  }

  return {
    /** Looks again where the names lead. Call it before reading, so that no later change is missed. */
    async refresh() {
      trails = await findTrails(directory, options.isWanted)
      const before = new Map(watchers)
      watchers.clear()
      for (const path of trails.names.keys()) {
        const key = await identityOf(path)
        const watcher = before.get(key) ?? open(path)
        before.delete(key)
        if (watcher !== undefined) watchers.set(key, watcher)
      }
      for (const watcher of before.values()) watcher.close()
    },
    close() {
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

/** A directory that was made again has the same path and is another one. */
async function identityOf(path: string): Promise<string> {
  const { dev, ino } = await stat(path).catch(() => ({ dev: 0, ino: 0 }))
  return `${path} ${dev} ${ino}`
}

interface Trails {
  /** Real path of the directory; undefined while it does not exist. */
  readonly real: string | undefined
  /** Names to watch for, by the real path of the directory that holds them. */
  readonly names: ReadonlyMap<string, ReadonlySet<string>>
}

/**
 * Every name on the way to the directory and to those of its files that are links: Kubernetes swaps a link inside of
 * the directory, deployments one in front of it.
 */
async function findTrails(directory: string, isWanted: (name: string) => boolean): Promise<Trails> {
  const tracer = createTracer()
  const real = await tracer.trace(directory)
  if (real === undefined) return { real, names: tracer.names }
  tracer.add(real)
  const entries = await readdir(real, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    if (entry.isSymbolicLink() && isWanted(entry.name)) await tracer.trace(join(real, entry.name))
  }
  return { real, names: tracer.names }
}

/** Links on one way; the kernel follows as many. */
const maxLinks = 40

function createTracer() {
  const names = new Map<string, Set<string>>()
  const targets = new Map<string, Promise<string | null | undefined>>()

  function add(path: string): Set<string> {
    const known = names.get(path) ?? new Set()
    names.set(path, known)
    return known
  }

  function targetOf(path: string): Promise<string | null | undefined> {
    const target = targets.get(path) ?? readTarget(path)
    targets.set(path, target)
    return target
  }

  /** The real path, all names on the way noted; undefined where it ends before. */
  async function trace(path: string): Promise<string | undefined> {
    const { root } = parse(path)
    let at = root
    let rest = stepsOf(path)
    for (let links = 0; rest.length > 0; ) {
      const [step = '', ...after] = rest
      rest = after
      if (step === '..') {
        at = dirname(at)
        continue
      }
      add(at).add(step)
      const target = await targetOf(join(at, step))
      if (target === undefined || links > maxLinks) return undefined
      if (target === null) at = join(at, step)
      else {
        links += 1
        rest = [...stepsOf(target), ...after]
        if (isAbsolute(target)) at = root
      }
    }
    return at
  }

  return { names, add, trace }
}

function stepsOf(path: string): string[] {
  return path.split('/').filter(step => step !== '' && step !== '.')
}

/** The target of a link; null for a file that is not a link, undefined for one that does not exist. */
async function readTarget(path: string): Promise<string | null | undefined> {
  try {
    return await readlink(path)
  } catch (error) {
    return asError(error).code === 'EINVAL' ? null : undefined
  }
}
