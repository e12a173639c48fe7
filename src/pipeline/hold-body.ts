import type { IncomingMessage } from 'node:http'

/** The bytes of a body as far as they were held. */
export interface HeldBody {
  readonly bytes: Buffer
  /** False when the body is longer; the rest is still to be read. */
  readonly complete: boolean
}

/**
 * Holds a request body up to `limit` bytes. What lies beyond stays unread, so that an allowed body can still be
 * streamed: the held bytes are put back in front of it.
 *
 * @returns undefined when the client left before the end
 */
export function holdBody(req: IncomingMessage, limit: number): Promise<HeldBody | undefined> {
  if (req.readableEnded) return Promise.resolve({ bytes: Buffer.alloc(0), complete: true })
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (complete: boolean) => {
      req.off('data', take).off('end', end).off('close', leave)
      resolve({ bytes: Buffer.concat(chunks, size), complete })
    }
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size <= limit) return
      req.pause()
      settle(false)
    }
    const end = () => settle(true)
    const leave = () => resolve(undefined)
    req.on('data', take).on('end', end).on('close', leave)
  })
}
