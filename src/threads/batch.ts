/** Collects what is not urgent, so that it is sent once every so often and not once for each request. */
export interface Batch<T> {
  add(item: T): void
  /** Sends what is there. */
  flush(): void
}

/** @param everyMs longest time that an item waits */
export function createBatch<T>(send: (items: readonly T[]) => void, everyMs = 5): Batch<T> {
  let items: T[] = []
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (items.length === 0) return
    const sent = items
    items = []
    send(sent)
  }
  return {
    add(item) {
      items.push(item)
      timer ??= setTimeout(flush, everyMs)
    },
    flush,
  }
}
