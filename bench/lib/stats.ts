/** Value at a share (0 to 1) of the sorted values, between two of them when it falls there. NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)]
  const high = sorted[Math.ceil(at)]
  return low === undefined || high === undefined ? Number.NaN : low + (high - low) * (at - Math.floor(at))
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** A figure measured in several rounds: its median, and the quarters below and above. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

export const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  low: quantile(values, 0.25),
  high: quantile(values, 0.75),
})

/** Of each round one value over the other: what the machine did in that round falls out. */
export function ratios(over: readonly number[], under: readonly number[]): readonly number[] {
  return over.map((value, round) => value / (under[round] ?? Number.NaN))
}
