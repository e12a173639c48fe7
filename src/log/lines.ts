import { printableJson } from '../base/deceptive.ts'

/** Destination of buffered lines. It may keep the bytes until they are written. */
export interface LineSink {
  write(lines: Buffer): void
  flush(): void
}

export type Lines = ReturnType<typeof bufferLines>

/** Lines are buffered for this time, milliseconds, or until this many bytes. */
const gatherMs = 10
const gatherBytes = 65_536
/** When more than this came in that time, the rest of the bytes may take so long to come, milliseconds. */
const manyBytes = 4_096
const longerMs = 40
/** Maximum of bytes of one UTF-16 unit: a JSON escape. */
const maxPerCharacter = 6

/**
 * Buffers lines: each write wakes a thread, which costs as much as 70 lines. They are buffered as bytes, since strings that
 * wait outlive the young generation.
 */
export function bufferLines(sink: LineSink) {
  let buffer = Buffer.allocUnsafeSlow(gatherBytes)
  let used = 0
  let timer: NodeJS.Timeout | undefined
  const handOn = (): void => {
    clearTimeout(timer)
    if (used === 0) return
    sink.write(buffer.subarray(0, used))
    buffer = buffer.subarray(used)
    used = 0
  }
  const handOnUnlessMany = (): void => {
    if (used > manyBytes) timer = setTimeout(handOn, longerMs)
    else handOn()
  }
  return {
    write(line: string) {
      const max = line.length * maxPerCharacter
      if (max > buffer.length - used) {
        handOn()
        if (max > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.max(gatherBytes, max))
      }
      if (used === 0) timer = setTimeout(handOnUnlessMany, gatherMs)
      const bytes = buffer.write(line, used)
      // As many bytes as characters: all of it is ASCII, as most lines are.
      used += bytes === line.length ? bytes : buffer.write(printableJson(line), used)
    },
    /** Passes the buffered lines on, and flushes the sink. */
    flush() {
      handOn()
      sink.flush()
    },
  }
}
