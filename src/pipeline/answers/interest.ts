import type { Refusal } from '../../base/refusals.ts'
import type { ResponseHead } from '../../upstream/handler.ts'

/** The interest of one reader in the answer to one request. */
export interface Interest {
  /** It reads no content coding: `Accept-Encoding` is not passed on. */
  readonly wantsPlainBytes: boolean
  /** Sees a body that streams. `piece` is valid during this call alone. */
  seeRequest?(piece: Buffer): void
  /**
   * Reads the answer in front of `out`. Returns a refusal when the agent must not get the answer; undefined when the answer
   * has nothing to read.
   */
  open?(head: ResponseHead, out: AnswerOutput): Rewriter | Refusal | undefined
  /** Sees the answer without changing it; undefined when there is nothing to see in it. */
  watch?(head: ResponseHead): Tap | undefined
}

/** Sees the body of an answer as it came. */
export interface Tap {
  /** Called before `chunk` is passed on, which is valid during this call alone. */
  see(chunk: Buffer): void
}

/** Takes the body of an answer, and passes on what the agent gets. */
export interface Rewriter {
  /** `chunk` is valid during this call alone. */
  take(chunk: Buffer): void
  end(): void
}

/** New length of a body, bytes. `unchanged`: the body and its fields stay as the upstream sent them. */
export type BodyLength = number | 'unknown' | 'unchanged'

/** Where a rewriter writes: to the agent, or into the next rewriter. */
export interface AnswerOutput {
  writeHead(length: BodyLength): void
  /** `bytes` are valid during this call alone. */
  write(bytes: Buffer): void
  finish(): void
  /** Ends the exchange, because the answer cannot be passed on. */
  refuse(refusal: Refusal): void
  pause(): void
  resume(): void
}

/** The end of the last rewriter. */
export interface AgentOutput extends AnswerOutput {
  /** Adapts the fields to the rewritten body, before the head is written. */
  describe(length: BodyLength): void
}
