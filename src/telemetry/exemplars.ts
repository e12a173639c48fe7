/**
 * Exemplars: the last recorded trace of each bucket of a histogram, in the memory that threads share. Another thread may
 * read while one is written: a version that is odd, or changed meanwhile, tells the reader so (a seqlock). Every access is
 * atomic, so that none is moved past those of the version.
 */
export interface Exemplar {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** What was observed, seconds. */
  readonly value: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Cells of 8 bytes that one takes: the version, four words of the id, two numbers. */
export const exemplarCells = 5
const wordsOfCell = 2
const wordsOfId = [1, 2, 3, 4]
const [valueAt, timeAt] = [5, 7]

/** Numbers as the words that are stored. */
const number = new Float64Array(1)
const halves = new Int32Array(number.buffer)

/** @param words memory of the one thread that writes there */
export function writeExemplar(words: Int32Array, cell: number, { traceId, value, at }: Exemplar): void {
  const first = cell * wordsOfCell
  // It is odd already when a thread died while it wrote.
  const unfinished = Atomics.load(words, first) | 1
  Atomics.store(words, first, unfinished)
  for (const i of wordsOfId) {
    Atomics.store(words, first + i, Number.parseInt(traceId.slice(i * 8 - 8, i * 8), 16))
  }
  storeNumber(words, first + valueAt, value)
  storeNumber(words, first + timeAt, at)
  Atomics.store(words, first, unfinished + 1)
}

/** Undefined when there is none, and while it is written. */
export function readExemplar(words: Int32Array, cell: number): Exemplar | undefined {
  const first = cell * wordsOfCell
  const version = Atomics.load(words, first)
  if (version === 0 || (version & 1) === 1) return undefined
  const id = wordsOfId.map(i => (Atomics.load(words, first + i) >>> 0).toString(16).padStart(8, '0'))
  const exemplar = {
    traceId: id.join(''),
    value: loadNumber(words, first + valueAt),
    at: loadNumber(words, first + timeAt),
  }
  return Atomics.load(words, first) === version ? exemplar : undefined
}

function storeNumber(words: Int32Array, at: number, value: number): void {
  number[0] = value
  Atomics.store(words, at, halves[0]!)
  Atomics.store(words, at + 1, halves[1]!)
}

function loadNumber(words: Int32Array, at: number): number {
  halves[0] = Atomics.load(words, at)
  halves[1] = Atomics.load(words, at + 1)
  return number[0]!
}
