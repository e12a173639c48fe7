import { once } from '../base/once.ts'

/** Bytes that one round reads before connections have to wait: 1 to 3 ms. */
const roundBytes = 2 * 2 ** 20
/**
 * Bodies that go on in each round. A body that has arrived completely is then usually read to its end before the next
 * begins.
 */
const bodiesPerRound = 4

/**
 * In one round of the event loop node reads all received bytes of each connection: when 64 clients send 1 MiB each, all
 * others wait for 50 ms. So one round reads a few MiB, and the bodies that are left go on in the next rounds, in the order
 * in which they had to stop.
 *
 * @param soon calls back in the next round of the event loop
 */
export function createReadTurns(soon: (work: () => void) => void = setImmediate) {
  // Not a Set, whose former tables would keep the bodies alive (see SlotList).
  const waiting: (() => void)[] = []
  let left = roundBytes
  const schedule = once(soon, () => {
    left = roundBytes
    if (waiting.length > bodiesPerRound) schedule()
    for (let count = 0; count < bodiesPerRound; count++) waiting.shift()?.()
  })

  return {
    /**
     * Counts bytes that were read of a body. True: this round of the event loop has read enough. Stop reading then;
     * `resume` is called when the turn of this body has come.
     */
    isOver(bytes: number, resume: () => void): boolean {
      left -= bytes
      schedule()
      if (left > 0) return false
      if (!waiting.includes(resume)) waiting.push(resume)
      return true
    },
    /** Whether `resume` is still to be called. */
    awaits: (resume: () => void) => waiting.includes(resume),
    /** `resume` is not called any more. */
    forget(resume: () => void) {
      const at = waiting.indexOf(resume)
      if (at >= 0) waiting.splice(at, 1)
    },
  }
}

/** The turns of this thread, which has one event loop. */
export const readTurns = createReadTurns()
