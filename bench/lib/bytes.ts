import { Readable } from 'node:stream'

const chunk = Buffer.alloc(65_536, 'x')

/** A body of that length, made as it is read. */
export const bodyOf = (size: number): Readable => Readable.from(chunks(size))

function* chunks(size: number): Generator<Buffer> {
  for (let left = size; left > 0; left -= chunk.length) yield left < chunk.length ? chunk.subarray(0, left) : chunk
}
