/** Long work in turns, so that requests are served in between. */
export interface Turns {
  /** Lets other work run; the next turn of the event loop if left out. */
  readonly pause?: () => Promise<void>
}

/** About a millisecond's work. */
export const rulesPerTurn = 100

export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
