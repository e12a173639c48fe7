/**
 * A function that has `work` called once, however often it is called before that; then once more.
 *
 * @param soon calls back later
 */
export function once(soon: (work: () => void) => void, work: () => void): () => void {
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    soon(() => {
      isScheduled = false
      work()
    })
  }
}
