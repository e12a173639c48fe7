import { exemplarCells } from './exemplars.ts'

/**
 * Metrics and their cells in memory. The values of every label are a closed set: nothing that a caller chooses, such as
 * an agent or host, becomes a label, so that callers cannot make the page grow. Each thread writes a block of cells of its
 * own, and the thread that shows them adds the blocks up.
 */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** Undefined for a single number. */
  readonly label: string | undefined
  /** Cell of each value of the label. */
  readonly cells: ReadonlyMap<string, number>
  /** How the numbers of several threads are combined. */
  readonly merge: 'sum' | 'max'
  /** The same for each host that has a label, and then for all others. */
  readonly origins?: readonly Family[]
}

export interface Histogram {
  readonly name: string
  readonly help: string
  /** Upper bounds of the buckets, seconds, ascending; one more bucket takes what is above. */
  readonly bounds: readonly number[]
  /** Undefined for a single histogram. */
  readonly label: string | undefined
  /** Cell of the first bucket of each value of the label; the sum follows the last bucket. */
  readonly cells: ReadonlyMap<string, number>
  /** Cell of the first exemplar of each value of the label; undefined when it has none. */
  readonly exemplars?: ReadonlyMap<string, number>
  readonly origins?: readonly Histogram[]
}

const alone = ''
let next = 0

/** Cells of all metrics that were made so far: numbers of one thread. */
export const cellCount = (): number => next

const named = (name: string): string => (name.startsWith('nodejs_') ? name : `agent_gateway_${name}`)

export function family(name: string, help: string, label: string, values: readonly string[]): Family {
  const cells = new Map(values.map(value => [value, next++]))
  return { name: named(name), help, type: 'counter', label: label || undefined, cells, merge: 'sum' }
}

export const counter = (name: string, help: string): Family => family(name, help, alone, [alone])

export const gauge = (name: string, help: string, merge: Family['merge'] = 'sum'): Family => ({
  ...counter(name, help),
  type: 'gauge',
  merge,
})

/** @param values of the label, or none */
export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  [label, ...values]: readonly [label: string, ...values: string[]] = [alone, alone],
): Histogram {
  const cells = new Map(
    values.map(value => {
      const first = next
      next += bounds.length + 2
      return [value, first]
    }),
  )
  return { name: named(name), help, bounds, label: label || undefined, cells }
}

/** Hosts with a label of their own (Telemetry:Metrics:Origins). */
export const maxOrigins = 50

/** The same metric, counted for each of these hosts as well, and for all others together. */
export function byOrigin<M extends Family | Histogram>(metric: M): M & { readonly origins: readonly M[] } {
  const size = 'bounds' in metric ? metric.bounds.length + 2 : 1
  const again = (): M => {
    const cells = [...metric.cells.keys()].map((value, index) => [value, next + index * size] as const)
    next += cells.length * size
    return { ...metric, cells: new Map(cells) }
  }
  return { ...metric, origins: Array.from({ length: maxOrigins + 1 }, again) }
}

/** The same histogram, whose buckets keep the last recorded trace. */
export function withExemplars(plain: Histogram): Histogram {
  const exemplars = new Map<string, number>()
  for (const value of plain.cells.keys()) {
    exemplars.set(value, next)
    next += (plain.bounds.length + 1) * exemplarCells
  }
  return { ...plain, exemplars }
}
