/** Collects messages that are not urgent and sends them together, not one for each request. */
export interface Batch<T> {
  add(item: T): void
  /** Sends what has been collected. */
  flush(): void
}

/** Longest wait of a message to another thread, milliseconds: each sending wakes it. */
const usualMs = 50

/** @param everyMs longest wait of a message */
export function createBatch<T>(send: (items: readonly T[]) => void, everyMs = usualMs): Batch<T> {
  let items: T[] = []
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    const batch = items
    items = []
    if (batch.length > 0) send(batch)
  }
  return {
    add(item) {
      items.push(item)
      timer ??= setTimeout(flush, everyMs)
    },
    flush,
  }
}

/** The same thing a number of times. */
export type Counted<T> = readonly [item: T, times: number]

/** A batch of things of which many are equal: those with the same key are sent once, with their number. */
export function createTally<T>(keyOf: (item: T) => string, send: (items: readonly Counted<T>[]) => void): Batch<T> {
  const known = new Map<string, [T, number]>()
  const batch = createBatch<Counted<T>>(items => {
    known.clear()
    send(items)
  })
  return {
    add(item) {
      const key = keyOf(item)
      const before = known.get(key)
      if (before !== undefined) {
        before[1] += 1
        return
      }
      const first: [T, number] = [item, 1]
      known.set(key, first)
      batch.add(first)
    },
    flush: batch.flush,
  }
}
