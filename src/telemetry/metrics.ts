import type { Family, Histogram } from './family.ts'
import { blockLength } from './layout.ts'

/** Memory for the counters of a number of threads. */
export function createMetricsMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * blockLength * Float64Array.BYTES_PER_ELEMENT)
}

/**
 * The counters of one thread: plain numbers, since it alone writes them. They never decrease: when a thread dies, the one
 * in its place goes on with its numbers.
 *
 * @param memory shared by the threads; the numbers of this one alone when absent
 * @param thread number of this thread, from 0
 */
export function createMetrics(memory: SharedArrayBuffer = createMetricsMemory(1), thread = 0): Metrics {
  return new Metrics(blockOf(memory, thread))
}

const statusClasses: readonly string[] = ['', '1xx', '2xx', '3xx', '4xx', '5xx']

/** Class of a status as value of a label. A status that has no class is read as a fault of the server (RFC 9110 section 15). */
export const classOf = (status: number): string => statusClasses[Math.min(Math.floor(status / 100), 5)] ?? ''

export class Metrics {
  readonly #cells: Float64Array

  constructor(cells: Float64Array) {
    this.#cells = cells
  }

  /** Counts one of a label's values. */
  count({ cells }: Family, value: string): void {
    const cell = cells.get(value)
    if (cell !== undefined) this.#cells[cell]! += 1
  }

  /** Adds to one of a label's values. */
  change({ cells }: Family, value: string, by: number): void {
    const cell = cells.get(value)
    if (cell !== undefined) this.#cells[cell]! += by
  }

  /** Adds to a single number. */
  add({ cells }: Family, by: number): void {
    const cell = cells.get('')
    if (cell !== undefined) this.#cells[cell]! += by
  }

  set({ cells }: Family, value: number): void {
    const cell = cells.get('')
    if (cell !== undefined) this.#cells[cell] = value
  }

  /** Sets all of its values to 0. */
  clear({ cells }: Family): void {
    for (const cell of cells.values()) this.#cells[cell] = 0
  }

  /** @param value of the label, if there is one */
  observe({ bounds, cells }: Histogram, seconds: number, value = ''): void {
    const first = cells.get(value)
    if (first === undefined) return
    let bucket = 0
    while (bucket < bounds.length && seconds > bounds[bucket]!) bucket++
    this.#cells[first + bucket]! += 1
    this.#cells[first + bounds.length + 1]! += seconds
  }
}

function blockOf(memory: SharedArrayBuffer, thread: number): Float64Array {
  return new Float64Array(memory, thread * blockLength * Float64Array.BYTES_PER_ELEMENT, blockLength)
}

/** The counters of all threads together. */
export interface Totals {
  /** One number for each value of the label. */
  of(family: Family): readonly (readonly [value: string, total: number])[]
  /** One for each value of the label. */
  ofHistogram(histogram: Histogram): readonly (readonly [value: string, total: HistogramTotal])[]
}

/** Counts of the buckets, not added up, and the sum of all observations. */
export interface HistogramTotal {
  readonly counts: readonly number[]
  readonly sum: number
}

export function readTotals(memory: SharedArrayBuffer): Totals {
  const threads = memory.byteLength / (blockLength * Float64Array.BYTES_PER_ELEMENT)
  const blocks = Array.from({ length: threads }, (_, thread) => blockOf(memory, thread))
  const sum = (cell: number) => blocks.reduce((total, block) => total + block[cell]!, 0)
  const max = (cell: number) => Math.max(...blocks.map(block => block[cell]!))
  return {
    of: ({ cells, merge }) => [...cells].map(([value, cell]) => [value, merge === 'sum' ? sum(cell) : max(cell)]),
    ofHistogram: ({ bounds, cells }) =>
      [...cells].map(([value, first]) => [
        value,
        {
          counts: Array.from({ length: bounds.length + 1 }, (_, bucket) => sum(first + bucket)),
          sum: sum(first + bounds.length + 1),
        },
      ]),
  }
}
