import { asError } from '../../base/as-error.ts'
import type { Control, ResponseHead, UpstreamHandler } from '../../upstream/handler.ts'
import type { Sendable } from '../exchange.ts'

/** Bytes of an answer that are kept while a credential is renewed. One that is longer is not an explanation. */
const maxKept = 65_536

export interface RenewalActions {
  /** Whether there is another value now. */
  renew(): Promise<boolean>
  /** Gives the request the new value, so that the one before is no longer hidden. False: there is none any more. */
  place(): boolean
  /** Sends the request once more, with the new value. */
  resend(): void
  /** The exchange was answered meanwhile, or its client has left. */
  isOver(): boolean
}

/** Whether a request can be sent once more after an answer with status 401: the upstream has not acted, and its body is here. */
export function isRenewable({ credentials = [], body, hasBody, isUpgraded, sentAgain }: Sendable): boolean {
  const isNamed = credentials.some(({ name }) => name !== undefined)
  return isNamed && !sentAgain && !isUpgraded && (body !== undefined || !hasBody)
}

/** What came of an answer while it is held back. */
interface HeldAnswer {
  readonly head: ResponseHead
  readonly chunks: Buffer[]
  length: number
  end: { readonly trailers: readonly string[] } | { readonly error: Error } | undefined
}

/**
 * Stands between an upstream and the reader of its answer. An answer with status 401 is held back while the credential is
 * renewed: then the request is sent once more, or the answer is passed on after all.
 */
export class RenewedAnswer implements UpstreamHandler {
  readonly #reader: UpstreamHandler
  readonly #actions: RenewalActions
  #control: Control | undefined = undefined
  #held: HeldAnswer | undefined = undefined
  /** The request was sent again: nothing of this answer counts. */
  #isDropped = false

  constructor(reader: UpstreamHandler, actions: RenewalActions) {
    this.#reader = reader
    this.#actions = actions
  }

  onRequestStart(control: Control): void {
    this.#control = control
    this.#reader.onRequestStart?.(control)
  }

  onBodySent(bytes: number, piece?: Buffer): void {
    if (!this.#isDropped) this.#reader.onBodySent?.(bytes, piece)
  }

  onBodyWritten(): void {
    // That write of the body is over, also of an answer that was dropped.
    this.#reader.onBodyWritten?.()
  }

  onInterim(head: ResponseHead): void {
    this.#reader.onInterim?.(head)
  }

  onResponseStart(head: ResponseHead): void {
    if (head.status !== 401) {
      this.#reader.onResponseStart(head)
      return
    }
    this.#held = { head, chunks: [], length: 0, end: undefined }
    this.#control?.pause()
    this.#actions
      .renew()
      .then(
        // What was passed on meanwhile may still show the value before.
        isNew => (isNew && this.#held !== undefined && this.#actions.place() ? this.#drop() : this.#passOn()),
        () => this.#passOn(),
      )
      .catch(error => this.#reader.onResponseError(asError(error)))
  }

  onResponseData(chunk: Buffer): void {
    const held = this.#held
    if (this.#isDropped) return
    if (held === undefined) this.#reader.onResponseData(chunk)
    else {
      held.chunks.push(Buffer.from(chunk))
      held.length += chunk.length
      if (held.length > maxKept) this.#passOn()
    }
  }

  onResponseEnd(trailers: readonly string[]): void {
    if (this.#held !== undefined) this.#held.end = { trailers }
    else if (!this.#isDropped) this.#reader.onResponseEnd(trailers)
  }

  onResponseError(error: Error): void {
    if (this.#held !== undefined) this.#held.end = { error }
    else if (!this.#isDropped) this.#reader.onResponseError(error)
  }

  #drop(): void {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    this.#isDropped = true
    if (held.end === undefined) this.#control?.abort(new Error('the request is sent with another credential'))
    this.#actions.resend()
  }

  #passOn(): void {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    if (this.#actions.isOver()) return
    this.#reader.onResponseStart(held.head)
    for (const chunk of held.chunks) this.#reader.onResponseData(chunk)
    if (held.end === undefined) this.#control?.resume()
    else if ('error' in held.end) this.#reader.onResponseError(held.end.error)
    else this.#reader.onResponseEnd(held.end.trailers)
  }
}
