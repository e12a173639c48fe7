/** Collects messages that are not urgent and sends them together, not one for each request. */
export interface Batch<T> {
  add(item: T): void
  /** Tells what is there. */
  flush(): void
}

/** How long something may wait to be told, milliseconds: each time wakes another thread up. */
const everyMs = 50

export function createBatch<T>(tell: (items: readonly T[]) => void): Batch<T> {
  let items: T[] = []
  const flush = inTime(() => {
    if (items.length === 0) return
    const told = items
    items = []
    tell(told)
  })
  return {
    add(item) {
      items.push(item)
      flush.soon()
    },
    flush: flush.now,
  }
}

/** The same thing a number of times. */
export type Counted<T> = readonly [item: T, times: number]

/** A batch of things that often are the same. `keyOf` says which are. */
export function createTally<T>(keyOf: (item: T) => string, tell: (items: readonly Counted<T>[]) => void): Batch<T> {
  let items = new Map<string, [T, number]>()
  const flush = inTime(() => {
    if (items.size === 0) return
    const told = [...items.values()]
    items = new Map()
    tell(told)
  })
  return {
    add(item) {
      const key = keyOf(item)
      const known = items.get(key)
      if (known === undefined) items.set(key, [item, 1])
      else known[1] += 1
      flush.soon()
    },
    flush: flush.now,
  }
}

function inTime(work: () => void) {
  let timer: NodeJS.Timeout | undefined
  const now = (): void => {
    clearTimeout(timer)
    timer = undefined
    work()
  }
  return {
    now,
    soon(): void {
      timer ??= setTimeout(now, everyMs)
    },
  }
}
