/**
 * Work that is asked for at any time and never done twice at once: asked for while it runs, it is done once more behind that,
 * however often it was asked for.
 *
 * @param work never rejects
 */
export function repeatable(work: () => Promise<void>): () => void {
  let [isRunning, isWanted] = [false, false]
  const run = async (): Promise<void> => {
    isRunning = true
    while (isWanted) {
      isWanted = false
      await work()
    }
    isRunning = false
  }
  return () => {
    isWanted = true
    if (!isRunning) void run()
  }
}
