import type { IncomingMessage } from 'node:http'
import { type Refusal, refuse } from '../base/refusals.ts'

/**
 * Reads a request body whole.
 *
 * @param limit maximum of bytes; a longer body is `body_too_large`, at once when its length is announced.
 * @returns the bytes, or a refusal; `invalid_request` when the sender went away before the end.
 */
export function readBody(req: IncomingMessage, limit: number): Promise<Buffer | Refusal> {
  const tooLarge = refuse('body_too_large', `The request body is larger than ${limit} bytes.`)
  if (Number(req.headers['content-length'] ?? 0) > limit) return Promise.resolve(tooLarge)
  if (req.readableEnded) return Promise.resolve(Buffer.alloc(0))
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const done = (outcome: Buffer | Refusal) => {
      req.off('data', take).off('end', finish).off('close', abort)
      resolve(outcome)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else done(tooLarge)
    }
    const finish = () => done(Buffer.concat(chunks, size))
    const abort = () => done(refuse('invalid_request', 'The request ended before its body did.'))
    // An aborted request emits `error` before `close`; without a listener it would end the process.
    req
      .on('data', take)
      .once('end', finish)
      .once('close', abort)
      .once('error', () => {})
  })
}
