/** A function that calls `work` at once, or as soon as `ms` have passed since it did so last. */
export function coalesce(ms: number, work: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isDue = false
  return function call() {
    isDue = timer !== undefined
    if (isDue) return
    timer = setTimeout(() => {
      timer = undefined
      if (isDue) call()
    }, ms).unref()
    work()
  }
}
