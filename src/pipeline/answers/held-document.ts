import { GrowingBuffer } from '../../base/growing-buffer.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { Sendable } from '../exchange.ts'
import type { ReaderParts } from '../parts.ts'
import type { AnswerOutput, Rewriter } from './interest.ts'

/** Longer answers are not read as one document, bytes: parsing the longest answer would block the event loop. */
export const longestDocument = 1_048_576

export const unreadable = refuse('tool_list_unreadable')

/** An answer that is one document. It is held until all of it is there; a longer one is passed on as it comes. */
export abstract class HeldDocument implements Rewriter {
  protected readonly exchange: Sendable
  protected readonly parts: ReaderParts
  readonly #out: AnswerOutput
  readonly #mustBeRead: boolean
  readonly #whole = new GrowingBuffer()
  #isPassing = false
  #isRefused = false

  /** @param mustBeRead the agent must not get it unread */
  constructor(exchange: Sendable, mustBeRead: boolean, out: AnswerOutput, parts: ReaderParts) {
    this.exchange = exchange
    this.parts = parts
    this.#out = out
    this.#mustBeRead = mustBeRead
  }

  /** The document as the agent gets it, `whole` itself if nothing changes; undefined when the agent must not get it. */
  protected abstract read(whole: Buffer): Promise<Buffer | undefined> | Buffer

  /** Whether this part of a longer document may be passed on. */
  protected abstract mayPass(part: Buffer): boolean

  take(chunk: Buffer): void {
    if (this.#isRefused) return
    if (this.#isPassing) this.#pass(chunk)
    else this.#hold(chunk)
  }

  #hold(chunk: Buffer): void {
    const full = holdAnswer(this.exchange, chunk.length, this.parts)
    this.#whole.add(chunk)
    if (full !== undefined) this.#refuse(full)
    else if (this.#whole.size > longestDocument) this.#passLong()
  }

  #passLong(): void {
    const begun = this.#whole.take()
    if (this.#mustBeRead || !this.mayPass(begun)) {
      this.#refuse(unreadable)
      return
    }
    holdAnswer(this.exchange, -begun.length, this.parts)
    this.#isPassing = true
    this.#out.writeHead('unchanged')
    this.#out.write(begun)
  }

  #pass(part: Buffer): void {
    if (this.mayPass(part)) this.#out.write(part)
    else this.#refuse(unreadable)
  }

  end(): void {
    if (this.#isRefused) return
    if (this.#isPassing) this.#out.finish()
    else void this.#deliver(this.#whole.take())
  }

  async #deliver(whole: Buffer): Promise<void> {
    const bytes = await this.read(whole)
    if (this.exchange.isOver) return
    if (bytes === undefined) return this.#refuse(unreadable)
    this.#out.writeHead(bytes === whole ? 'unchanged' : bytes.length)
    this.#out.write(bytes)
    this.#out.finish()
  }

  #refuse(refusal: Refusal): void {
    this.#isRefused = true
    this.#whole.take()
    this.#out.refuse(refusal)
  }
}

/** Counts bytes of an answer as held for the agent until the exchange ends; a negative number gives bytes back. */
export function holdAnswer(exchange: Sendable, bytes: number, { heldBytes, bounds }: ReaderParts): Refusal | undefined {
  if (bytes < 0) {
    // A streamed body gives back all held bytes when it was sent.
    const given = Math.min(exchange.held, -bytes)
    heldBytes.give(exchange.agent.id, given)
    exchange.held -= given
    return undefined
  }
  const bound = heldBytes.take(exchange.agent.id, bytes)
  if (bound === undefined) {
    exchange.held += bytes
    return undefined
  }
  bounds.reached(bound, exchange.agent.id, exchange.requestId)
  return refuse('busy', 'Too many bodies are being held. Wait as Retry-After says.')
}
