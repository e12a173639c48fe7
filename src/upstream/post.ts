import { setTimeout } from 'node:timers/promises'
import { literalAddress } from '../base/address.ts'
import type { Origin } from '../base/origin.ts'
import { createOrigin } from '../base/origin.ts'
import type { Refusal } from '../errors.ts'
import type { Connections } from './connections.ts'
import type { Egress } from './egress.ts'
import type { Control, Lease, ResponseHead, UpstreamHandler, UpstreamRequest } from './handler.ts'
import { UpstreamError } from './handler.ts'
import type { Resolver } from './resolve.ts'

/** A message of the gateway itself, to an address that the operator has configured. */
export interface PostMessage {
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** Nothing arrived, or it is not known whether it did. The text names the host alone: such URLs often hold a key. */
class PostError extends Error {
  override readonly name = 'PostError'
}

export interface Poster {
  /** Why nothing may be sent to this URL, as far as that shows without a look-up. */
  check(url: string): Refusal | undefined
  /**
   * Posts once, on a connection of its own, past the egress guard, and follows no redirect. Resolves with the status;
   * rejects with PostError when there is none within the time limit, or at the abort.
   */
  post(message: PostMessage, signal: AbortSignal): Promise<number>
}

export interface PosterParts {
  readonly connections: Pick<Connections, 'sendAlone'>
  readonly egress: Pick<Egress, 'checkHost' | 'checkAddresses'>
  readonly resolver: Resolver
  /** For the whole exchange, milliseconds. Default 10,000. */
  readonly timeoutMs?: number
}

export function createPoster({ connections, egress, resolver, timeoutMs = 10_000 }: PosterParts): Poster {
  return {
    check(url) {
      const origin = originOf(new URL(url))
      const literal = literalAddress(origin.host)
      return egress.checkHost(origin) ?? egress.checkAddresses(origin, literal === undefined ? [] : [literal])
    },
    async post(message, signal) {
      const url = new URL(message.url)
      const origin = originOf(url)
      const resolution = await resolver.resolve(origin.host)
      if ('failed' in resolution) throw new PostError(`${origin.host}: no address found`)
      const refusal = egress.checkHost(origin) ?? egress.checkAddresses(origin, resolution.addresses)
      if (refusal !== undefined) throw new PostError(`${origin.host}: refused by Egress`)
      const request: UpstreamRequest = {
        method: 'POST',
        path: url.pathname + url.search,
        fields: message.headers,
        body: Buffer.from(message.body),
      }
      const posting = new Posting(origin.host)
      const done = new AbortController()
      const late = setTimeout(timeoutMs, undefined, { signal: AbortSignal.any([signal, done.signal]) })
      late.then(
        () => posting.giveUp(`no answer within ${timeoutMs} ms`),
        () => posting.giveUp('the gateway stopped'),
      )
      connections.sendAlone(origin, resolution, request, posting)
      return posting.status.finally(() => done.abort())
    },
  }
}

function originOf(url: URL): Origin {
  const scheme = url.protocol === 'http:' ? 'http' : 'https'
  return createOrigin(scheme, url.hostname, Number(url.port) || (scheme === 'http' ? 80 : 443))
}

/** Takes the status of an answer and leaves the rest. */
class Posting implements UpstreamHandler {
  lease: Lease | undefined = undefined
  readonly status: Promise<number>
  readonly #host: string
  readonly #outcome = Promise.withResolvers<number>()
  #control: Control | undefined = undefined
  #over = false

  constructor(host: string) {
    this.#host = host
    this.status = this.#outcome.promise
  }

  onRequestStart(control: Control): void {
    this.#control = control
    if (this.#over) control.abort(new PostError('over'))
  }

  onResponseStart({ status }: ResponseHead): void {
    this.#outcome.resolve(status)
    this.#over = true
    // The status says it all; closing the connection is the short way to be rid of a body.
    this.#control?.abort(new PostError('over'))
  }

  onResponseData(): void {}

  onResponseEnd(): void {
    this.lease?.release(true)
  }

  onResponseError(error: Error): void {
    this.#over = true
    this.lease?.release(false)
    this.#outcome.reject(new PostError(`${this.#host}: ${nameOf(error)}`))
  }

  giveUp(why: string): void {
    if (this.#over) return
    this.#over = true
    this.#outcome.reject(new PostError(`${this.#host}: ${why}`))
    this.#control?.abort(new PostError(why))
  }
}

/** What tells one failure from another, without the text: it may hold more than the host. */
function nameOf(error: Error): string {
  if (error instanceof UpstreamError) return error.fault
  return 'code' in error ? String(error.code) : error.name
}
