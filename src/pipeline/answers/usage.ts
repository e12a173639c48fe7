/** Reads what calls of models used: all with Metering:Usage, or those that a budget counts. Their answers pass unchanged. */
import { readsAnswer } from '../budgets/reservation.ts'
import type { ReaderParts } from '../parts.ts'
import type { AnswerReader } from './reader.ts'

export const usageReader = ({ meterOf, config: { Metering } }: ReaderParts): AnswerReader => ({
  wantsBody: () => false,
  interestIn(exchange) {
    exchange.meter = Metering.Usage || readsAnswer(exchange.spend) ? meterOf?.(exchange) : undefined
    return exchange.meter
  },
})
