import { isRefusal, type Refusal } from '../../base/refusals.ts'
import { downstreamFields } from '../../http/headers.ts'
import { fieldName, requestIdField } from '../../http/names.ts'
import { takeBackHead } from '../../http/take-back.ts'
import type { Control, ResponseHead } from '../../upstream/handler.ts'
import type { KnownHead } from '../../upstream/known-head.ts'
import { answer, breakOff } from '../answer.ts'
import { withLength } from '../answers/fields.ts'
import type { AgentOutput, BodyLength, Interest, Rewriter, Tap } from '../answers/interest.ts'
import { openRewriters, openTap } from '../answers/readers.ts'
import { answerLimits } from '../budgets/limit-fields.ts'
import { chargeWhole, readsAnswer } from '../budgets/reservation.ts'
import type { Sendable } from '../exchange.ts'
import { readRpc } from '../mcp/requests.ts'
import type { Parts } from '../parts.ts'
import { refuseFenced } from '../rights.ts'
import { AnswerBody, oneStringBytes } from './answer-body.ts'
import { answerFields, answerStatus } from './answer-fields.ts'
import { pairs } from './interim.ts'
import type { LastBytes } from './last-bytes.ts'
import { guardFields, guardHead } from './upstream-request.ts'

/** Responses up to this length are sent in one write with their head, bytes. */
const oneWriteBytes = 65_536

/** Node sends no body after one of these statuses was set, even if the status is replaced. */
const bodiless = new Set([204, 304])

/**
 * Whether the head of its answer depends on the upstream alone, but for the request id and values to hide (`guardHead`), and
 * the connection is kept.
 */
function isUsual(exchange: Sendable): boolean {
  const { interests, rateFields, spend, expectsContinue, tokenNames, req, res } = exchange
  const getsFields = interests !== undefined || rateFields !== undefined || readsAnswer(spend)
  const isFramedByUs = expectsContinue || !req.complete || !res.shouldKeepAlive
  if (getsFields || isFramedByUs) return false
  return !tokenNames.includes('authorization')
}

/** Whether every client gets this head as it is (`answerStatus`), and node sends its body as it comes. */
function isSameForAll({ fields, contentLength, status }: ResponseHead): boolean {
  if (contentLength === undefined || bodiless.has(status) || status === 407) return false
  return fields.every((name, at) => at % 2 === 1 || fieldName(name).leads === undefined)
}

/** Sends an upstream's answer to the client as it arrives (spec 4.4, rule 5). */
export abstract class Downstream implements AgentOutput {
  protected readonly exchange: Sendable
  protected readonly parts: Parts
  /** Undefined until the first byte of the request is about to be written. */
  protected control: Control | undefined = undefined
  /** Reads the answer before the agent gets it. */
  protected rewriter: Rewriter | undefined = undefined
  /** Sees the answer as it comes. */
  protected tap: Tap | undefined = undefined
  /** Set once the client has left, and the taps still read. */
  protected lastBytes: LastBytes | undefined = undefined
  /** Missing bytes of a short answer that is sent as a whole; otherwise 0. */
  #missing = 0
  /** Undefined while the answer may still come as a whole. */
  #body: AnswerBody | undefined = undefined
  /** The head of the answer, and its fields as the agent gets them, once the rewriters have something for it. */
  #head: ResponseHead | undefined = undefined
  #fields: readonly string[] | undefined = undefined

  constructor(exchange: Sendable, parts: Parts) {
    this.exchange = exchange
    this.parts = parts
  }

  /** Ends the exchange. An upstream request that is under way is aborted, so that it cannot look complete. */
  protected abstract cutOff(refusal: Refusal): void

  protected passHead(received: ResponseHead): void {
    const head = guardHead(received, this.exchange, this.parts)
    const known = head === received && isUsual(this.exchange) ? head.known : undefined
    if (known?.fits(this.exchange.res)) known.write(this.exchange.res, this.exchange.requestId)
    else if (this.#shapeHead(head)) return
    else if (known?.isNew) this.#remember(known, head)
    const { contentLength = 0 } = head
    this.#missing = contentLength <= oneWriteBytes ? contentLength : 0
    if (this.#missing === 0) this.#stream()
  }

  #remember(known: KnownHead, head: ResponseHead): void {
    known.isNew = false
    if (isSameForAll(head)) known.note(this.exchange.res, this.exchange.requestId)
  }

  /** Writes the head, unless a reader of the answer does so. Returns whether one has it. */
  #shapeHead(head: ResponseHead): boolean {
    const { res, req, interests, requestId, rateFields, spend } = this.exchange
    const { budgets } = this.parts
    const fields = answerFields(head.fields, this.exchange)
    fields.push(requestIdField, requestId)
    if (rateFields !== undefined) fields.push(...rateFields)
    if (spend !== undefined && budgets !== undefined) fields.push(...answerLimits(spend, head.fields, budgets))
    // The rest of the upload is not read, so the next request on this connection could not be trusted.
    if (!req.complete) fields.push('Connection', 'close')
    res.sendDate = false
    if (interests !== undefined && this.#isRead(interests, head, fields)) return true
    this.#writeStart(head, fields)
    return false
  }

  /** The head of an answer whose client has left. */
  protected seeHead(head: ResponseHead, lastBytes: LastBytes): void {
    this.tap = openTap(this.exchange.interests ?? [], head)
    if (this.tap === undefined) lastBytes.stop()
    else lastBytes.begin()
  }

  /** Whether readers have the answer now. @param fields those that the agent gets */
  #isRead(interests: readonly Interest[], head: ResponseHead, fields: readonly string[]): boolean {
    this.#head = head
    this.#fields = fields
    const opened = openRewriters(interests, head, this)
    if (isRefusal(opened)) this.refuse(opened)
    else {
      this.rewriter = opened
      this.tap = openTap(interests, head)
    }
    return opened !== undefined
  }

  /**
   * Checked before each write, and not only when the fence falls: a busy or stopped process notices the fence late. If true,
   * the exchange has ended.
   */
  protected isFenced(): boolean {
    const fenced = this.parts.fencedAs?.()
    if (fenced === undefined) return false
    if (this.exchange.refusal === undefined) this.cutOff(refuseFenced(this.exchange, fenced))
    return true
  }

  onResponseData(chunk: Buffer): void {
    if (this.isFenced()) return
    this.exchange.bytesDown += chunk.length
    this.tap?.see(chunk)
    if (this.lastBytes !== undefined) this.lastBytes.add(chunk.length)
    else if (this.rewriter === undefined) this.#passOn(chunk)
    else this.rewriter.take(chunk)
  }

  #passOn(chunk: Buffer): void {
    if (this.#missing > 0 && chunk.length === this.#missing) {
      const { res } = this.exchange
      chargeWhole(this.exchange, this.parts)
      // The whole answer is here: head and body leave in one write.
      if (chunk.length <= oneStringBytes) res.end(chunk.toString('latin1'), 'latin1')
      else res.end(Buffer.from(chunk))
      return
    }
    this.#missing = 0
    this.#stream().add(chunk)
  }

  describe(length: BodyLength): void {
    if (length !== 'unchanged' && this.#fields !== undefined) this.#fields = withLength(this.#fields, length)
  }

  writeHead(length: BodyLength): void {
    if (this.isFenced()) return
    this.describe(length)
    if (this.#head === undefined) throw new Error('cannot happen: an answer begins without a head')
    this.#writeStart(this.#head, [...(this.#fields ?? [])])
    this.#stream()
  }

  #writeStart({ status, reason }: ResponseHead, fields: string[]): void {
    const shown = answerStatus(status, this.exchange, fields)
    if (shown === status) this.exchange.res.writeHead(status, reason, fields)
    else this.exchange.res.writeHead(shown, fields)
  }

  write(bytes: Buffer): void {
    if (!this.isFenced()) this.#stream().add(bytes)
  }

  finish(trailers: readonly string[] = []): void {
    if (this.isFenced()) return
    const { res } = this.exchange
    this.exchange.ending = 'forwarded'
    chargeWhole(this.exchange, this.parts)
    if (trailers.length > 0) res.addTrailers(pairs(downstreamFields(guardFields(trailers, this.exchange, this.parts))))
    if (this.#body === undefined) res.end()
    else this.#body.end()
  }

  /** The answer of the upstream cannot be passed on. */
  refuse(refusal: Refusal): void {
    const { body, res } = this.exchange
    if (body !== undefined && !res.headersSent) readRpc(this.exchange, body, this.parts)
    this.cutOff(refusal)
  }

  pause(): void {
    this.control?.pause()
  }

  resume(): void {
    if (this.exchange.stalledSince === undefined) this.control?.resume()
  }

  #stream(): AnswerBody {
    if (this.#body !== undefined) return this.#body
    this.#body = new AnswerBody(this.exchange.res, { onFull: () => this.#stalled(), onDrained: () => this.#drained() })
    return this.#body
  }

  #stalled(): void {
    this.control?.pause()
    this.exchange.stalledSince = this.parts.clock.steady()
  }

  #drained(): void {
    this.exchange.stalledSince = undefined
    this.control?.resume()
  }

  /** Answers with a refusal, or shows the client that its answer is incomplete. */
  protected fail(refusal: Refusal): void {
    const { res } = this.exchange
    // After the head was sent, only a broken connection shows the client that the answer is incomplete.
    if (res.headersSent && !this.#takeBack()) breakOff(this.exchange)
    answer(this.exchange, refusal)
  }

  /** Takes the head back if nothing was written yet: the malformed part arrived in the same read. */
  #takeBack(): boolean {
    const { res } = this.exchange
    if (res.writableEnded || bodiless.has(res.statusCode) || this.#body?.drop() === false) return false
    takeBackHead(res)
    return true
  }
}
