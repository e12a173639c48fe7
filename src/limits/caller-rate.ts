/** The rate limit of callers: of this gateway alone, or of the fleet. */
export interface CallerRate {
  /** Takes one request: 0 when it may pass, else milliseconds until it may; undefined when `asked` must be waited for. */
  take(key: string, now: number): number | undefined
  /** Resolves when the fleet was asked for the key, or takes too long to answer. */
  asked(key: string): Promise<void>
  /** Requests that could follow at once the one that was taken last; undefined when the fleet counts them. */
  left(): number | undefined
}

/** The fleet is asked for a token at most this many times: other calls of the caller may take the leased tokens. */
const maxAsks = 20

/** Longest time of asking, milliseconds: for a call that was under way, and for the next one. */
const longestAskMs = 2_000

export interface Asking {
  /** Steady milliseconds. */
  readonly now: () => number
  /** Ends the wait before a token is taken; the result is then meaningless. */
  readonly isOver?: () => boolean
}

/** Takes one request of a caller for whom the fleet must be asked first: 0 when it may pass, else milliseconds until it may. */
export async function takeAsked(rate: CallerRate, key: string, { now, isOver = () => false }: Asking): Promise<number> {
  const until = now() + longestAskMs
  for (let asks = 0; asks < maxAsks && now() < until; asks++) {
    await rate.asked(key)
    const wait = isOver() ? 1 : rate.take(key, now())
    if (wait !== undefined) return wait
  }
  return 1
}
