import type { Decided, Sendable } from '../exchange.ts'
import type { Interest } from './interest.ts'

/** Reads the answers to some requests before the agent gets them. `readers.ts` lists all of them. */
export interface AnswerReader {
  /** Whether it reads the body of a request that the decision did not need. */
  wantsBody(exchange: Decided): boolean
  /**
   * Its interest in the answer; undefined when it has none. Called just before the request is sent. Returns a promise only
   * when it must read a long body first.
   */
  interestIn(exchange: Sendable): Interest | undefined | Promise<Interest | undefined>
}
