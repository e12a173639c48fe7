import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { freeBytes } from '../../http/free-bytes.ts'
import { readTurns } from '../../http/read-turns.ts'
import type { BodyMemory } from '../body-memory.ts'
import type { Admitted, Exchange } from '../exchange.ts'
import type { OutboundParts } from '../parts.ts'
import { readAhead } from '../read-ahead.ts'

export interface HeldBody {
  readonly bytes: Buffer
  /** False when the body is longer; the rest is still to be read. */
  readonly complete: boolean
}

/** Where so little of a body is still to come, bytes, it is read at once: to let it wait would cost time, and save little memory. */
const shortRest = 262_144

/**
 * Holds a request body of at most `limit` bytes in the exchange. A longer body is put back, so that it can still be
 * streamed. Held bytes count against Proxy:MaxHeldBytes as they come, until `letGo` or the end of the exchange.
 *
 * @returns a refusal when the client left before the end, or when Proxy:MaxHeldBytes is reached
 */
export function holdBody(exchange: Admitted, limit: number, parts: OutboundParts): Promise<HeldBody | Refusal> {
  const { agent, fields, req } = exchange
  const since = parts.clock.steady()
  // Bytes that an earlier step has put back come again, and are counted again.
  letGo(exchange, parts)
  if (req.readableEnded) return Promise.resolve(keep(exchange, Buffer.alloc(0), true))
  return new Promise(resolve => {
    const held = new GrowingBody(parts.bodyMemory, Math.min(fields.contentLength, limit))
    const resume = () => {
      const left = fields.contentLength - held.size
      const isShort = left >= 0 && left <= shortRest
      if (isShort || !readAhead.isEnough(agent.id, resume)) req.resume()
    }
    const done = (outcome: boolean | Refusal) => {
      readTurns.forget(resume)
      readAhead.forget(agent.id, resume)
      exchange.bodyMs += parts.clock.steady() - since
      req.off('data', take).off('end', end).off('close', leave)
      if (isRefusal(outcome)) held.free()
      resolve(isRefusal(outcome) ? outcome : keep(exchange, held.bytes, outcome))
    }
    const take = (chunk: Buffer) => {
      // Nothing gives back bytes that are counted after the end of the exchange.
      if (exchange.isOver) {
        leave()
        return
      }
      // The chunk has no length any more once it was added.
      const { length } = chunk
      const full = hold(exchange, length, parts)
      held.add(chunk)
      if (full !== undefined || held.size > limit) {
        req.pause()
        done(full ?? false)
      } else if (readTurns.isOver(length, resume)) req.pause()
    }
    const end = () => done(true)
    const leave = () => done(clientLeft())
    // A listener alone would make it flow.
    req.pause().on('data', take).on('end', end).on('close', leave)
    resume()
  })
}

function keep(exchange: Exchange, bytes: Buffer, complete: boolean): HeldBody {
  if (complete) exchange.body = bytes
  else exchange.req.unshift(bytes)
  return { bytes, complete }
}

/** Memory is allocated for this many times the bytes that arrived, so that an announced length alone takes none. */
const growth = 4

/** A body that arrives in chunks. Each is copied and freed at once. */
class GrowingBody {
  size = 0
  readonly #memory: BodyMemory
  readonly #announced: number
  #buffer: Buffer | undefined

  /** @param announced bytes that are expected; below 0 when that is not known */
  constructor(memory: BodyMemory, announced: number) {
    this.#memory = memory
    this.#announced = announced
  }

  get bytes(): Buffer {
    return this.#buffer?.subarray(0, this.size) ?? Buffer.alloc(0)
  }

  /** Nobody reads it: a garbage collection may not come before the next load. */
  free(): void {
    if (this.#buffer !== undefined) this.#memory.give(this.#buffer)
    this.#buffer = undefined
  }

  add(chunk: Buffer): void {
    const { size } = this
    this.size += chunk.length
    // Short bodies come in one chunk, which is not copied.
    if (size === 0 && chunk.length >= this.#announced && this.#announced > 0) this.#buffer = chunk
    else {
      chunk.copy(this.#spaceFor(this.size, size), size)
      freeBytes(chunk)
    }
  }

  #spaceFor(bytes: number, used: number): Buffer {
    const before = this.#buffer
    if (before !== undefined && before.length >= bytes) return before
    const expected = this.#announced > 0 ? this.#announced : 2 * bytes
    const buffer = this.#memory.take(Math.max(bytes, Math.min(growth * bytes, expected)))
    if (before !== undefined) {
      before.copy(buffer, 0, 0, used)
      this.#memory.give(before)
    }
    this.#buffer = buffer
    return buffer
  }
}

const clientLeft = (): Refusal => refuse('invalid_request', 'The request ended before its body did.')

function hold(exchange: Admitted, bytes: number, { heldBytes, bounds }: OutboundParts): Refusal | undefined {
  const agentId = exchange.agent.id
  const bound = heldBytes.take(agentId, bytes)
  if (bound === undefined) {
    exchange.held += bytes
    return undefined
  }
  bounds.reached(bound, agentId, exchange.requestId)
  return refuse('busy', 'Too many request bodies are being held. Wait as Retry-After says.')
}

/** Call it when the held bytes of an exchange are no longer in memory, or are being sent. */
export function letGo(exchange: Exchange, { heldBytes }: Pick<OutboundParts, 'heldBytes'>): void {
  if (exchange.held === 0 || exchange.agent === undefined) return
  heldBytes.give(exchange.agent.id, exchange.held)
  exchange.held = 0
}

/**
 * Gives back the held bytes and the memory of the body at the end of an exchange. Until a decision is made nothing but the
 * decision reads a body, and it does not go on for an exchange that is over.
 */
export function releaseBody(exchange: Exchange, parts: Pick<OutboundParts, 'heldBytes' | 'bodyMemory'>): void {
  letGo(exchange, parts)
  const { body, decision, loan } = exchange
  if (body === undefined || decision !== undefined || loan !== undefined) loan?.end()
  else {
    exchange.body = undefined
    parts.bodyMemory.give(body)
  }
}

/**
 * Gives back the memory of an allowed body whose client left while a step waited. Call it when that step is over and the
 * exchange has ended: nothing has sent the body, and nothing reads it any more.
 */
export function freeUnsent(exchange: Exchange, { bodyMemory }: Pick<OutboundParts, 'bodyMemory'>): void {
  const { body, effect, loan } = exchange
  if (body === undefined || effect !== 'Allow' || loan !== undefined) return
  exchange.body = undefined
  bodyMemory.give(body)
}
