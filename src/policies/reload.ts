import { setTimeout as sleep } from 'node:timers/promises'
import { asError } from '../base/as-error.ts'

/** Looks in a row that must show the same before files count as written. */
const stillLooks = 4
/** Looks after which the files are reported as changing all the time. */
const maxLooks = 120
/** Times that files may change while they are read. */
const maxTries = 5

export interface ReloadParts<T> {
  /** Milliseconds between two looks; files must not change during four of them, a second. */
  readonly lookMs: number
  /** The state of the files, as a text to compare. */
  readonly look: () => Promise<string>
  readonly read: () => Promise<T>
  /** @returns a line for each mistake; when there is any, nothing was changed */
  readonly load: (files: T) => Promise<readonly string[]>
  readonly report: (lines: readonly string[]) => void
}

/** State of the files that were loaded last, and the report about it. */
export interface LoadState {
  readonly stamp: string
  readonly lines: readonly string[]
}

export interface Reloader {
  /** For a caller who waits: the result is reported even if nothing has changed. False: there was a mistake. */
  now(): Promise<boolean>
  /** Something may have changed. */
  soon(): void
  close(): void
}

/**
 * Reads files again once they stop changing: a file that is being written may be a valid policy before it is complete.
 * At most one reload runs and one waits, however many are requested.
 */
export function createReloader<T>(parts: ReloadParts<T>, start: LoadState): Reloader {
  let last = start
  let running: Promise<boolean> = Promise.resolve(true)
  let waiting: Promise<boolean> | undefined
  let timer: NodeJS.Timeout | undefined

  async function run(isAsked: boolean): Promise<boolean> {
    const stamp = await parts.look()
    if (stamp !== last.stamp) last = (await loadStill(parts, stamp)) ?? { stamp: '', lines: [unrest] }
    else if (!isAsked) return true
    parts.report(last.lines)
    return last.lines.length === 0
  }

  function request(isAsked: boolean): Promise<boolean> {
    waiting ??= running.then(() => {
      waiting = undefined
      running = run(isAsked)
      return running
    })
    return waiting
  }

  return {
    now: () => request(true),
    soon() {
      timer ??= setTimeout(() => {
        timer = undefined
        void request(false)
      }, parts.lookMs).unref()
    },
    close: () => clearTimeout(timer),
  }
}

const unrest = 'files in Policy:Directory keep changing; they are read when they have not changed for a second'

/** Loads the files once they stop changing; undefined when they do not. */
async function loadStill<T>(parts: ReloadParts<T>, first: string): Promise<LoadState | undefined> {
  for (let tries = 0; tries < maxTries; tries++) {
    const stamp = await untilStill(parts, tries === 0 ? first : await parts.look())
    if (stamp === undefined) return undefined
    const attempt = await readStill(parts, stamp)
    if (attempt !== undefined) return attempt
  }
  return undefined
}

/** Undefined when the files have changed while they were read. */
async function readStill<T>({ look, read, load }: ReloadParts<T>, stamp: string): Promise<LoadState | undefined> {
  try {
    const files = await read()
    return (await look()) === stamp ? { stamp, lines: await load(files) } : undefined
  } catch (error) {
    return { stamp, lines: [asError(error).message] }
  }
}

/** The state that four looks after `first` have shown, too; undefined when there is none. */
async function untilStill<T>({ look, lookMs }: ReloadParts<T>, first: string): Promise<string | undefined> {
  let stamp = first
  let same = 0
  let pause = sleep(lookMs, undefined, { ref: false })
  for (let looks = 0; looks < maxLooks; looks++) {
    await pause
    pause = sleep(lookMs, undefined, { ref: false })
    const now = await look()
    same = now === stamp ? same + 1 : 0
    stamp = now
    if (same >= stillLooks) return stamp
  }
  return undefined
}
