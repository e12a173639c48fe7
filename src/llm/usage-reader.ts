/**
 * Reads what an answer of a model provider says of its use, while its bytes pass unchanged. It keeps the last 8 KiB, since
 * every provider tells at the end. Nothing is parsed before the answer is over but the first event of Anthropic, which tells
 * the input.
 */
import {
  hasUsageObject,
  mayHaveUsage,
  modelAtEnd,
  modelAtStart,
  readFrames,
  readUsage,
  showsContent,
  showsThoughts,
} from './answer-text.ts'
import type { Format } from './formats.ts'
import type { Usage } from './usage.ts'

export type Division = 'json' | 'events' | 'lines' | 'frames'

/** @returns undefined for types that no provider uses for what it tells */
export function divisionOf(contentType: string): Division | undefined {
  const [type = ''] = contentType.toLowerCase().split(';', 1)
  const essence = type.trim()
  if (essence === 'text/event-stream') return 'events'
  if (essence === 'application/vnd.amazon.eventstream') return 'frames'
  if (essence === 'application/x-ndjson' || essence === 'application/jsonl') return 'lines'
  return essence === 'application/json' ? 'json' : undefined
}

export interface UsageFound {
  readonly usage: Usage | undefined
  /** The answer was cut off before the usage was complete. */
  readonly isPartial: boolean
  readonly model: string | undefined
}

const keptBytes = 8_192
const bufferBytes = 2 * keptBytes
/** Buffers that a thread keeps for the next answers. */
const maxSpare = 64
let spare: Buffer[] | undefined
const lineEnd = Buffer.from('\n')
const eventEnds = [Buffer.from('\n\n'), Buffer.from('\r\n\r\n')]
/** Events that tell nothing, one with each end. */
const comments = eventEnds.map(end => Buffer.concat([Buffer.from(':'), end]))
/** Events at the end of a stream that may tell. */
const lastEvents = 4
/** Of a stream, kept whatever it tells. */
const startBytes = 1_024
const lineFeed = 10
const carriageReturn = 13

function takeBuffer(): Buffer {
  spare ??= partsOfOne(maxSpare)
  return spare.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
}

/** In one piece of memory: what describes one of its own would leave the processor's caches between two events of a stream. */
function partsOfOne(parts: number): Buffer[] {
  const memory = Buffer.allocUnsafeSlow(parts * bufferBytes)
  return Array.from({ length: parts }, (_, n) => memory.subarray(n * bufferBytes, (n + 1) * bufferBytes))
}

export class UsageReader {
  readonly #format: Format
  readonly #division: Division
  /** Undefined before the first byte, and after the end. */
  #buffer: Buffer | undefined = undefined
  #used = 0
  /** Bytes at the beginning have left the buffer. */
  #isShifted = false
  #wantsFirst: boolean
  #first: Usage | undefined = undefined
  #model: string | undefined = undefined
  #isOver = false
  /** What was seen ends with an event. */
  #isAtEnd = false
  /** Whether events that tell nothing are left out; undefined: not known yet. */
  #leavesOut: boolean | undefined = undefined
  /** With the end of the event that was left out last. */
  #comment: Buffer = comments[0]!
  /** Events that tell nothing since the last one that was kept. */
  #leftOut = 0
  #hasContent = false
  #hasThoughts = false
  /** Of the answer, as far as they came before its end. */
  bytes = 0

  constructor(format: Format, division: Division) {
    this.#format = format
    this.#division = division
    this.#wantsFirst = format === 'anthropic' && division === 'events'
  }

  /** Copies what it needs of `chunk`. Bytes that come after the end, when the agent has left, do not count. */
  see(chunk: Buffer): void {
    if (this.#isOver) return
    this.bytes += chunk.length
    if (this.#division === 'events') this.#seeEvents(chunk)
    else this.#keep(chunk)
  }

  /** Counts events that tell nothing, which are most: to copy each is dear, since the caches are cold between two of them. */
  #seeEvents(chunk: Buffer): void {
    const comment = commentFor(chunk)
    const isSilent =
      comment !== undefined && this.#isAtEnd && this.#mayLeaveOut() && !hasUsageObject(this.#format, chunk)
    this.#isAtEnd = comment !== undefined
    if (isSilent) {
      // A model may think again after it has written something.
      this.#hasThoughts ||= showsThoughts(this.#format, chunk)
      this.#comment = comment
      this.#leftOut += 1
    } else {
      this.#keepComments()
      this.#keep(chunk)
    }
  }

  /** In the place of events that were left out, but of no more than the end of a stream is looked through. */
  #keepComments(): void {
    for (let left = Math.min(this.#leftOut, lastEvents + 1); left > 0; left--) this.#keep(this.#comment)
    this.#leftOut = 0
  }

  /** The name of the model, and the usage of the first event, must be known: both may stand nowhere else. */
  #mayLeaveOut(): boolean {
    if (this.#leavesOut === undefined && this.#used >= startBytes && this.#buffer !== undefined) {
      const start = this.#buffer.subarray(0, this.#used)
      this.#noteThoughts(start)
      if (!this.#hasContent) return false
      if (!this.#isShifted) this.#model = this.#modelAtStart(start)
      this.#leavesOut = this.#model !== undefined && !this.#wantsFirst
    }
    return this.#leavesOut === true
  }

  #keep(chunk: Buffer): void {
    this.#buffer ??= takeBuffer()
    const buffer = this.#buffer
    if (this.#used + chunk.length <= bufferBytes) {
      // Half the time of `copy` when the caches are cold, as between two events of a stream.
      buffer.set(chunk, this.#used)
      this.#used += chunk.length
    } else this.#shift(buffer, chunk)
    if (this.#wantsFirst) this.#readFirst(buffer.subarray(0, this.#used))
  }

  /** Keeps the last bytes. */
  #shift(buffer: Buffer, chunk: Buffer): void {
    if (!this.#isShifted) this.#readStart(buffer, chunk)
    const { length } = chunk
    const kept = Math.max(0, keptBytes - length)
    buffer.copyWithin(0, this.#used - kept, this.#used)
    chunk.copy(buffer, kept, Math.max(0, length - keptBytes))
    this.#used = keptBytes
  }

  /** Reads what stands at the beginning, before it leaves the buffer. */
  #readStart(buffer: Buffer, chunk: Buffer): void {
    this.#isShifted = true
    // What is behind `#used` is written again by the caller.
    const end = this.#used + chunk.copy(buffer, this.#used)
    const start = buffer.subarray(0, end)
    if (this.#wantsFirst) this.#readFirst(start)
    this.#wantsFirst = false
    this.#model ??= this.#modelAtStart(start)
    this.#noteThoughts(start)
  }

  #noteThoughts(part: Buffer): void {
    this.#hasContent ||= showsContent(this.#format, part)
    this.#hasThoughts ||= showsThoughts(this.#format, part)
  }

  /** The model may have thought more than the answer shows, as far as this came. */
  get mayThink(): boolean {
    return this.#hasThoughts || !this.#hasContent
  }

  /** An event may have the answer in its object. One in a document is what the agent sent, such as metadata. */
  #modelAtStart(start: Buffer): string | undefined {
    return modelAtStart(this.#format, start, this.#division === 'events' ? 2 : 1)
  }

  #readFirst(start: Buffer): void {
    const end = Math.max(...eventEnds.map(mark => start.indexOf(mark)))
    if (end < 0) return
    this.#wantsFirst = false
    this.#first = readUsage(this.#format, start.subarray(0, end))
  }

  /** Call it once, when the answer is over. @param isWhole the upstream ended it */
  end(isWhole: boolean): UsageFound {
    this.#isOver = true
    this.#keepComments()
    const buffer = this.#buffer
    if (buffer === undefined) return { usage: undefined, isPartial: !isWhole, model: undefined }
    const all = buffer.subarray(0, this.#used)
    if (!isWhole) this.#noteThoughts(all)
    if (!this.#isShifted) this.#model ??= this.#modelAtStart(all)
    const tail = isWhole ? all : this.#completeOf(all)
    const last = this.#read(tail)
    // Each event of Gemini tells what was used until then.
    const isPartial = last === undefined || (this.#format === 'gemini' && !isWhole)
    const model = this.#model ?? modelAtEnd(this.#format, this.#lastUnit(tail))
    this.#buffer = undefined
    if (spare !== undefined && spare.length < maxSpare) spare.push(buffer)
    return { usage: last === undefined ? this.#first : together(this.#first, last), isPartial, model }
  }

  /**
   * The events or lines that are complete. In one that was cut off the brackets are missing that show where a usage
   * belongs: it could stand in the arguments of a tool.
   */
  #completeOf(tail: Buffer): Buffer {
    if (this.#division === 'frames') return tail
    if (this.#division === 'json') return tail.subarray(0, 0)
    const marks = this.#division === 'events' ? eventEnds : [lineEnd]
    return tail.subarray(0, Math.max(...marks.map(mark => endOfLast(tail, mark))))
  }

  #read(tail: Buffer): Usage | undefined {
    if (this.#division === 'frames') return readFrames(this.#format, tail)
    if (this.#division === 'events') return this.#readEvents(tail)
    return readUsage(this.#format, this.#lastUnit(tail))
  }

  #lastUnit(tail: Buffer): Buffer {
    return this.#division === 'lines' || this.#division === 'events' ? lastLine(tail) : tail
  }

  #readEvents(tail: Buffer): Usage | undefined {
    // One native search in place of one for each event.
    if (!mayHaveUsage(this.#format, tail)) return undefined
    const mark = eventEnds.find(each => tail.includes(each)) ?? eventEnds[0]!
    let end = tail.length
    for (let tries = 0; tries <= lastEvents && end > 0; tries++) {
      const before = tail.lastIndexOf(mark, end - 1)
      const from = before < 0 ? 0 : before + mark.length
      // The event at the beginning tells nothing of the end.
      if (from === 0 && this.#first !== undefined && !this.#isShifted) return undefined
      const found = from < end ? readUsage(this.#format, tail.subarray(from, end)) : undefined
      if (found !== undefined) return found
      end = Math.max(0, before)
    }
    return undefined
  }
}

/** Fields that the end does not repeat are those of the beginning, which alone divides what was written by its duration. */
function together(first: Usage | undefined, last: Usage): Usage {
  if (first === undefined) return last
  const isFull = last.input > 0 || last.cacheRead > 0 || last.cacheWrite > 0
  const { cacheWrite, cacheWriteLong } = first
  if (!isFull) return { ...first, output: last.output }
  return last.cacheWrite === cacheWrite + cacheWriteLong ? { ...last, cacheWrite, cacheWriteLong } : last
}

/** With the same end as the chunk; undefined where this does not end with an event. */
function commentFor(chunk: Buffer): Buffer | undefined {
  const { length } = chunk
  if (chunk[length - 1] !== lineFeed) return undefined
  if (chunk[length - 2] === lineFeed) return comments[0]
  const isCrLf = chunk[length - 2] === carriageReturn && chunk[length - 3] === lineFeed
  return isCrLf && chunk[length - 4] === carriageReturn ? comments[1] : undefined
}

function endOfLast(tail: Buffer, mark: Buffer): number {
  const at = tail.lastIndexOf(mark)
  return at < 0 ? 0 : at + mark.length
}

/** The last line that is not empty. */
function lastLine(tail: Buffer): Buffer {
  let end = tail.length
  while (end > 0 && (tail[end - 1] === lineFeed || tail[end - 1] === carriageReturn)) end--
  return tail.subarray(tail.lastIndexOf(lineFeed, end - 1) + 1, end)
}
