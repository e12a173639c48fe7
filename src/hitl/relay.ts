/** Passes the answer to a replay to the reviewer, and keeps a copy for the agent. */
import type { PassThrough } from 'node:stream'

export interface Relayed {
  /** The whole body; undefined when it was longer than the cap or took too long to wait for. */
  readonly kept: Uint8Array | undefined
}

export interface RelayOptions {
  /** Bytes of the body, as announced; NaN when unknown. The last of them is passed on once the outcome is recorded. */
  readonly length: number
  /** Longest body that is kept, bytes. */
  readonly cap: number
  /** Whether the outcome must be recorded now, before the end of the body. */
  readonly isLate: () => boolean
  /** Called once, as soon as the kept body is known; not called when the body breaks off before. */
  readonly record: (relayed: Relayed) => Promise<void>
}

/**
 * Passes `body` to `out`, which may be destroyed at any time: a reviewer who leaves ends nothing before the outcome is
 * recorded. Up to the cap the bytes are held anyway, so a slow reviewer delays nothing; after that the upstream is read at
 * the reviewer's pace.
 *
 * @throws what `body` throws; `out` is destroyed then
 */
export async function relay(body: AsyncIterable<Uint8Array>, out: PassThrough, options: RelayOptions): Promise<void> {
  // An error of the reviewer's connection is no failure of the replay.
  out.on('error', () => {})
  let kept: Uint8Array[] | undefined = []
  let last: Uint8Array | undefined
  let size = 0
  try {
    for await (const chunk of body) {
      kept?.push(chunk)
      size += chunk.byteLength
      if (kept !== undefined && (size > options.cap || options.isLate())) {
        kept = undefined
        await options.record({ kept })
      }
      // A client with all announced bytes takes the answer for complete, and asks for its copy.
      const isEnd = kept !== undefined && size >= options.length
      if (isEnd) last = chunk
      const canWrite = out.destroyed || isEnd || out.write(chunk)
      if (kept !== undefined) continue
      if (out.destroyed) return
      if (!canWrite) await drained(out)
    }
  } catch (error) {
    out.destroy(error instanceof Error ? error : undefined)
    throw error
  }
  if (kept !== undefined) await options.record({ kept: Buffer.concat(kept) })
  out.end(last)
}

/** Resolves when `out` takes more, or is closed. */
function drained(out: PassThrough): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (!out.writableNeedDrain || out.destroyed) return Promise.resolve()
  out.once('drain', resolve).once('close', resolve)
  return promise.finally(() => out.off('drain', resolve).off('close', resolve))
}
