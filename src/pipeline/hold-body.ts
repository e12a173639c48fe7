import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'
import { isOver } from './rights.ts'

/** The bytes of a body as far as they were held. */
export interface HeldBody {
  readonly bytes: Buffer
  /** False when the body is longer; the rest is still to be read. */
  readonly complete: boolean
}

/**
 * Holds a request body up to `limit` bytes. What lies beyond stays unread, so that an allowed body can still be
 * streamed: the held bytes are put back in front of it. Held bytes count against Proxy:MaxHeldBytes as they come, until
 * `letGo` or the end of the exchange.
 *
 * @returns a refusal when the client left before the end, or there is no room for more
 */
export function holdBody(exchange: Exchange, limit: number, parts: Parts): Promise<HeldBody | Refusal> {
  const { req } = exchange
  if (req.readableEnded) return Promise.resolve({ bytes: Buffer.alloc(0), complete: true })
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (outcome: boolean | Refusal) => {
      req.off('data', take).off('end', end).off('close', leave)
      resolve(isRefusal(outcome) ? outcome : { bytes: Buffer.concat(chunks, size), complete: outcome })
    }
    const take = (chunk: Buffer) => {
      // Nothing gives back what is taken behind the end of the exchange.
      if (isOver(exchange)) {
        leave()
        return
      }
      const full = hold(exchange, chunk.length, parts)
      chunks.push(chunk)
      size += chunk.length
      if (full === undefined && size <= limit) return
      req.pause()
      settle(full ?? false)
    }
    const end = () => settle(true)
    const leave = () => settle(clientLeft())
    req.on('data', take).on('end', end).on('close', leave)
  })
}

const clientLeft = (): Refusal => refuse('invalid_request', 'The request ended before its body did.')

function hold(exchange: Exchange, bytes: number, { heldBytes, bounds }: Parts): Refusal | undefined {
  const agentId = exchange.agent?.id ?? ''
  const bound = heldBytes.take(agentId, bytes)
  if (bound === undefined) {
    exchange.held += bytes
    return undefined
  }
  bounds.reached(bound, agentId, exchange.requestId)
  return refuse('busy', 'Too many request bodies are being held. Wait as Retry-After says.', {
    headers: ['Retry-After', '1'],
  })
}

/** The held bytes of an exchange are in memory no longer, or on their way to the upstream. */
export function letGo(exchange: Exchange, { heldBytes }: Pick<Parts, 'heldBytes'>): void {
  if (exchange.held === 0) return
  heldBytes.give(exchange.agent?.id ?? '', exchange.held)
  exchange.held = 0
}
