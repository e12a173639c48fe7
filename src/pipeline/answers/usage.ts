/** Reads what calls of models used. Their answers pass unchanged. */
import type { ReaderParts } from '../parts.ts'
import type { AnswerReader } from './reader.ts'

export const usageReader = ({ meterOf }: ReaderParts): AnswerReader => ({
  wantsBody: () => false,
  interestIn(exchange) {
    exchange.meter = meterOf?.(exchange)
    return exchange.meter
  },
})
