import type { Outcome } from './goals.ts'
import type { Measured } from './rounds.ts'
import { median, spreadOf } from './stats.ts'
import { figure, table } from './table.ts'

/** Medians of the rounds, and the range of CPU time. */
export function figuresText(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, rounds, residentBytes }) => {
    const cpu = spreadOf(rounds.map(round => round.cpu))
    return [
      name,
      figure(median(rounds.map(({ perSecond }) => perSecond))),
      figure(cpu.median, 1),
      Number.isNaN(cpu.median) ? '-' : `${figure(cpu.low, 1)}-${figure(cpu.high, 1)}`,
      figure(median(rounds.map(({ p50 }) => p50)), 2),
      figure(median(rounds.map(({ p99 }) => p99)), 2),
      figure(residentBytes === undefined ? undefined : residentBytes / 2 ** 20),
    ]
  })
  return table(['road', 'requests/s', 'CPU us/request', 'range', 'p50 ms', 'p99 ms', 'RSS MiB'], rows)
}

export function outcomesText(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ what, ratio, limit, met }) => [
    what,
    `${figure(ratio.median, 2)} x`,
    `${figure(ratio.low, 2)}-${figure(ratio.high, 2)}`,
    `<= ${figure(limit, 2)} x`,
    met ? 'met' : 'missed',
  ])
  return table(['against', 'gateway', 'range', 'goal', ''], rows)
}
