import { setImmediate } from 'node:timers/promises'

/** Work that can be divided: it yields where other work may run. */
export type Divided<T> = Generator<void, T>

/** Rules that are read or compiled between two yields: about a millisecond's work. */
export const rulesPerTurn = 100

export function doAtOnce<T>(work: Divided<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/** Does the work in turns of the event loop, so that requests are served in between. */
export async function doInTurns<T>(work: Divided<T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    await setImmediate()
  }
}
