import { isRefusal, type Refusal, refuse } from '../errors.ts'
import type { Admitted, Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'
import { isOver } from './rights.ts'

/** The bytes of a body that are held. */
export interface HeldBody {
  readonly bytes: Buffer
  /** False when the body is longer; the rest is still to be read. */
  readonly complete: boolean
}

/**
 * Holds a request body up to `limit` bytes. The rest stays unread, so that an allowed body can still be streamed: the
 * caller puts the held bytes back in front of it. Held bytes count against Proxy:MaxHeldBytes as they come, until
 * `letGo` or the end of the exchange.
 *
 * @returns a refusal when the client left before the end, or there is no room for more
 */
export function holdBody(exchange: Admitted, limit: number, parts: Parts): Promise<HeldBody | Refusal> {
  const { req } = exchange
  if (req.readableEnded) return Promise.resolve({ bytes: Buffer.alloc(0), complete: true })
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const done = (outcome: boolean | Refusal) => {
      req.off('data', take).off('end', end).off('close', leave)
      if (isRefusal(outcome)) resolve(outcome)
      // Short bodies come in one chunk, which is not copied.
      else resolve({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size), complete: outcome })
    }
    const take = (chunk: Buffer) => {
      // Nothing gives back what is taken after the end of the exchange.
      if (isOver(exchange)) {
        leave()
        return
      }
      const full = hold(exchange, chunk.length, parts)
      chunks.push(chunk)
      size += chunk.length
      if (full === undefined && size <= limit) return
      req.pause()
      done(full ?? false)
    }
    const end = () => done(true)
    const leave = () => done(clientLeft())
    req.on('data', take).on('end', end).on('close', leave)
  })
}

const clientLeft = (): Refusal => refuse('invalid_request', 'The request ended before its body did.')

function hold(exchange: Admitted, bytes: number, { heldBytes, bounds }: Parts): Refusal | undefined {
  const agentId = exchange.agent.id
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

/** Call it when the held bytes of an exchange are no longer in memory, or are being sent. */
export function letGo(exchange: Exchange, { heldBytes }: Pick<Parts, 'heldBytes'>): void {
  if (exchange.held === 0 || exchange.agent === undefined) return
  heldBytes.give(exchange.agent.id, exchange.held)
  exchange.held = 0
}
