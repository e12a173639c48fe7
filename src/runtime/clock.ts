/**
 * The only reader of time. Everything else takes a Clock, so that tests move time by hand.
 */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch: tokens, expiry, records. */
  now(): number
  /** Steady clock, milliseconds from an arbitrary start: rates, time limits, durations. Never goes back. */
  steady(): number
  /** Memory in which other threads find the same time (`clockIn`); undefined for the system clock. */
  readonly memory?: SharedArrayBuffer
}

/** `performance.now()` begins with each thread; this is the same in all of them. */
const sinceBoot = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now() + sinceBoot,
}

/** How long this thread has worked, milliseconds: it stands still while the thread waits for others. */
export function threadWorked(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** A clock that is set elsewhere: wall time and steady time, or the wall time at steady time 0 of `local` alone. */
export function clockIn(memory: SharedArrayBuffer, local = systemClock): Clock {
  const times = new Float64Array(memory)
  if (times.length === 1) {
    return { now: () => Math.floor(local.steady() + times[0]!), steady: () => local.steady(), memory }
  }
  return { now: () => times[0]!, steady: () => times[1]!, memory }
}

/**
 * The result of `work`, or of `late` when `work` takes longer than `ms`. `late` is not called for a result that arrived in
 * time while this thread was busy.
 */
export function inTime<T>(work: Promise<T>, ms: number, late: () => T | PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const giveUp = () => {
      if (!isOver) resolve(new Promise(give => give(late())))
    }
    const timer = setTimeout(() => setImmediate(giveUp), ms)
    const end = () => {
      isOver = true
      clearTimeout(timer)
    }
    work.then(resolve, reject).then(end)
  })
}
