/** Whole steps that may still be taken in this turn of the event loop. One is about 20 ns: a byte of the worst text. */
export interface Budget {
  left: number
}

/** Steps of work that looks at many characters at once. */
export function stepsOfText(length: number): number {
  return (length >> 3) + 1
}

/** Long work that can stop after any piece and go on later. */
export interface Work {
  /** Goes on until it is finished or the budget is spent; true when it is finished. */
  advance(budget: Budget): boolean
}
