import type { Outcome } from './goals.ts'
import type { Measured } from './rounds.ts'
import { median, type Spread, spreadOf } from './stats.ts'
import { figure, table } from './table.ts'

/** Medians of slices and rounds, and the quarters of CPU time. */
export function figuresText(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, rounds, slices, residentBytes, restingBytes }) => {
    const saturated = rounds.map(({ cpu }) => cpu)
    return [
      name,
      figure(median(rounds.map(({ perSecond }) => perSecond))),
      ...[slices, saturated].flatMap(cpu => spreadTexts(cpu.length === 0 ? undefined : spreadOf(cpu), 1)),
      figure(median(rounds.map(({ p50 }) => p50)), 2),
      figure(median(rounds.map(({ p99 }) => p99)), 2),
      mebibytes(residentBytes),
      mebibytes(restingBytes),
    ]
  })
  const cpu = ['slices us', 'quarters', 'saturated us', 'quarters']
  return table(['road', 'requests/s', ...cpu, 'p50 ms', 'p99 ms', 'RSS MiB', '10 s later'], rows)
}

const mebibytes = (bytes: number | undefined): string => figure(bytes === undefined ? undefined : bytes / 2 ** 20)

/** A median and its quarters; dashes where nothing was measured. */
function spreadTexts(spread: Spread | undefined, digits: number): readonly [string, string] {
  if (spread === undefined || Number.isNaN(spread.median)) return ['-', '-']
  return [figure(spread.median, digits), `${figure(spread.low, digits)}-${figure(spread.high, digits)}`]
}

export function outcomesText(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ what, value, sliced, saturated, unit, limit, met }) => {
    const digits = unit === 'x' ? 2 : unit === 'KiB' || unit === 'ms' ? 1 : 0
    const isOne = sliced === undefined && saturated === undefined
    return [
      what,
      ...spreadTexts(isOne ? value : sliced, digits),
      ...spreadTexts(saturated, digits),
      `<= ${figure(limit, digits)} ${unit}`,
      met ? 'met' : 'missed',
    ]
  })
  return table(['goal', 'slices', 'quarters', 'saturated', 'quarters', 'at most', ''], rows)
}
