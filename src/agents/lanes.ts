/** Runs work in turn per key: what is asked first is done first, and one failure does not stop the next. */
export interface Lanes {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export function createLanes(): Lanes {
  const tails = new Map<string, Promise<unknown>>()
  return {
    run(key, work) {
      const result = (tails.get(key) ?? Promise.resolve()).then(work, work)
      const tail = result
        .catch(() => undefined)
        .then(() => {
          if (tails.get(key) === tail) tails.delete(key)
        })
      tails.set(key, tail)
      return result
    },
    async idle() {
      while (tails.size > 0) await Promise.all(tails.values())
    },
  }
}
