import type { Outcome } from './goals.ts'
import type { Measured } from './rounds.ts'
import { median, spreadOf } from './stats.ts'
import { figure, table } from './table.ts'

/** Medians of the rounds, and the quarters of CPU time. */
export function figuresText(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, rounds, cpu: all, residentBytes }) => {
    const cpu = spreadOf(all)
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
  return table(['road', 'requests/s', 'CPU us/request', 'quarters', 'p50 ms', 'p99 ms', 'RSS MiB'], rows)
}

export function outcomesText(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ what, value, unit, limit, met }) => {
    const digits = unit === 'x' ? 2 : unit === 'KiB' || unit === 'ms' ? 1 : 0
    return [
      what,
      `${figure(value.median, digits)} ${unit}`,
      `${figure(value.low, digits)}-${figure(value.high, digits)}`,
      `<= ${figure(limit, digits)} ${unit}`,
      met ? 'met' : 'missed',
    ]
  })
  return table(['goal', 'gateway', 'quarters', 'at most', ''], rows)
}
