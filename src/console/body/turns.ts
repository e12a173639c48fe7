/** Long work in turns, between which the page answers the person. */

const turnMs = 20

export const turn = (): Promise<void> => new Promise(resolve => setTimeout(resolve))

/** @param work gets whether its turn is over; undefined: it is not done */
export async function inTurns<T>(work: (isTime: () => boolean) => T | undefined): Promise<T> {
  for (;;) {
    const until = performance.now() + turnMs
    const done = work(() => performance.now() >= until)
    // What is done with it has a turn of its own.
    await turn()
    if (done !== undefined) return done
  }
}
