import { type HostPattern, matchesHost } from '../base/host.ts'
import { LRUCache } from '../runtime/lru.ts'
import { type Exemplar, exemplarCells, readExemplar, writeExemplar } from './exemplars.ts'
import { type Family, type Histogram, maxOrigins } from './family.ts'
import { blockLength } from './layout.ts'

export function createMetricsMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * blockLength * Float64Array.BYTES_PER_ELEMENT)
}

/**
 * The counters of one thread: plain numbers, since it alone writes them. They never decrease: when a thread dies, the one
 * in its place goes on with its numbers.
 *
 * @param memory shared by the threads; the numbers of this one alone when absent
 * @param thread number of this thread, from 0
 * @param origins hosts that have a label of their own
 */
export function createMetrics(
  memory: SharedArrayBuffer = createMetricsMemory(1),
  thread = 0,
  origins: readonly HostPattern[] = [],
): Metrics {
  return new Metrics(blockOf(memory, thread), origins)
}

const statusClasses: readonly string[] = ['', '1xx', '2xx', '3xx', '4xx', '5xx']

/** Class of a status as value of a label. A status that has no class is read as a fault of the server (RFC 9110 section 15). */
export const classOf = (status: number): string => statusClasses[Math.min(Math.floor(status / 100), 5)] ?? ''

export class Metrics {
  readonly #cells: Float64Array
  /** The same memory. */
  readonly #words: Int32Array
  readonly #origins: readonly HostPattern[]
  readonly #places = new LRUCache<string, number>({ max: maxPlaces })

  constructor(cells: Float64Array, origins: readonly HostPattern[]) {
    this.#cells = cells
    this.#words = new Int32Array(cells.buffer, cells.byteOffset, cells.length * 2)
    this.#origins = origins.slice(0, maxOrigins)
  }

  count({ cells }: Family, value: string): void {
    const cell = cells.get(value)
    if (cell !== undefined) this.#cells[cell]! += 1
  }

  change({ cells }: Family, value: string, by: number): void {
    const cell = cells.get(value)
    if (cell !== undefined) this.#cells[cell]! += by
  }

  add({ cells }: Family, by: number): void {
    const cell = cells.get('')
    if (cell !== undefined) this.#cells[cell]! += by
  }

  set({ cells }: Family, value: number): void {
    const cell = cells.get('')
    if (cell !== undefined) this.#cells[cell] = value
  }

  clear({ cells }: Family): void {
    for (const cell of cells.values()) this.#cells[cell] = 0
  }

  /** @param value of the label, if there is one */
  observe({ bounds, cells }: Histogram, seconds: number, value = ''): void {
    const first = cells.get(value)
    if (first === undefined) return
    this.#cells[first + bucketOf(bounds, seconds)]! += 1
    this.#cells[first + bounds.length + 1]! += seconds
  }

  /** Keeps a recorded trace for the bucket of its value. @param label value of it, if there is one */
  exemplify({ bounds, exemplars }: Histogram, exemplar: Exemplar, label = ''): void {
    const first = exemplars?.get(label)
    if (first === undefined) return
    writeExemplar(this.#words, first + bucketOf(bounds, exemplar.value) * exemplarCells, exemplar)
  }

  /** Counts one of a label's values, for this host as well. */
  countOf(host: string, family: Family, value: string): void {
    this.count(family, value)
    const own = family.origins?.[this.#placeOf(host)]
    if (own !== undefined) this.count(own, value)
  }

  observeOf(host: string, histogram: Histogram, seconds: number): void {
    this.observe(histogram, seconds)
    const own = histogram.origins?.[this.#placeOf(host)]
    if (own !== undefined) this.observe(own, seconds)
  }

  /** Place of a host among those with a label; behind them the place of all others. */
  #placeOf(host: string): number {
    if (this.#origins.length === 0) return -1
    let place = this.#places.get(host)
    if (place === undefined) {
      const found = this.#origins.findIndex(pattern => matchesHost(pattern, host))
      place = found < 0 ? this.#origins.length : found
      this.#places.set(host, place)
    }
    return place
  }
}

/** Hosts whose place is kept. */
const maxPlaces = 1_000

function bucketOf(bounds: readonly number[], seconds: number): number {
  let bucket = 0
  while (bucket < bounds.length && seconds > bounds[bucket]!) bucket++
  return bucket
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
  /** The latest of each bucket. */
  readonly exemplars: readonly (Exemplar | undefined)[]
}

export function readTotals(memory: SharedArrayBuffer): Totals {
  const threads = memory.byteLength / (blockLength * Float64Array.BYTES_PER_ELEMENT)
  const blocks = Array.from({ length: threads }, (_, thread) => blockOf(memory, thread))
  const sum = (cell: number) => blocks.reduce((total, block) => total + block[cell]!, 0)
  const max = (cell: number) => Math.max(...blocks.map(block => block[cell]!))
  const words = blocks.map(block => new Int32Array(block.buffer, block.byteOffset, block.length * 2))
  const newest = (cell: number) =>
    words
      .map(of => readExemplar(of, cell))
      .reduce((best, next) => (next !== undefined && next.at > (best?.at ?? 0) ? next : best), undefined)
  return {
    of: ({ cells, merge }) => [...cells].map(([value, cell]) => [value, merge === 'sum' ? sum(cell) : max(cell)]),
    ofHistogram: ({ bounds, cells, exemplars }) =>
      [...cells].map(([value, first]) => {
        const counts = Array.from({ length: bounds.length + 1 }, (_, bucket) => sum(first + bucket))
        const kept = exemplars?.get(value)
        const latest = kept === undefined ? [] : counts.map((_, bucket) => newest(kept + bucket * exemplarCells))
        return [value, { counts, sum: sum(first + bounds.length + 1), exemplars: latest }]
      }),
  }
}
