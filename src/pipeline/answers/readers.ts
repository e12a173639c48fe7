import { isRefusal, type Refusal } from '../../base/refusals.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Decided, Sendable } from '../exchange.ts'
import type { Parts, ReaderParts } from '../parts.ts'
import type { AgentOutput, AnswerOutput, Interest, Rewriter, Tap } from './interest.ts'
import { metadataReader } from './metadata.ts'
import type { AnswerReader } from './reader.ts'
import { toolReader } from './tools.ts'
import { usageReader } from './usage.ts'

/** The readers that the settings ask for. An answer passes them in this order. */
export function createReaders(parts: ReaderParts): readonly AnswerReader[] {
  const readers = [toolReader(parts)]
  if (parts.config.Hosts.length > 0) readers.push(metadataReader(parts))
  if (parts.meterOf !== undefined) readers.push(usageReader(parts))
  return readers
}

/** Whether one of them reads the body of the request before it is sent. */
export function wantBody(exchange: Decided, readers: readonly AnswerReader[]): boolean {
  for (const reader of readers) if (reader.wantsBody(exchange)) return true
  return false
}

/** Notes which readers have an interest in the answer. Waits while one of them reads a long body in turns. */
export function askReaders(exchange: Sendable, { readers }: Pick<Parts, 'readers'>): Promise<undefined> | undefined {
  exchange.interests = undefined
  return askFrom(0, exchange, readers)
}

/** @param first index of the first reader that is asked */
function askFrom(first: number, exchange: Sendable, readers: readonly AnswerReader[]): Promise<undefined> | undefined {
  for (let at = first; at < readers.length; at++) {
    const found = readers[at]!.interestIn(exchange)
    if (found instanceof Promise) {
      return found.then(late => {
        if (late !== undefined) note(exchange, late)
        return askFrom(at + 1, exchange, readers)
      })
    }
    if (found !== undefined) note(exchange, found)
  }
  return undefined
}

function note(exchange: Sendable, interest: Interest): void {
  exchange.interests = exchange.interests === undefined ? [interest] : [...exchange.interests, interest]
}

/**
 * The first rewriter of an answer. Each rewriter writes into the next one, the last one to the agent. Undefined when there
 * is nothing to read.
 */
export function openRewriters(
  interests: readonly Interest[],
  head: ResponseHead,
  out: AgentOutput,
): Rewriter | Refusal | undefined {
  let next: Rewriter | undefined
  for (let at = interests.length - 1; at >= 0; at--) {
    const opened = interests[at]!.open?.(head, next === undefined ? out : joint(next, out))
    if (isRefusal(opened)) return opened
    next = opened ?? next
  }
  return next
}

/** What sees an answer as it came; undefined when nothing does. */
export function openTap(interests: readonly Interest[], head: ResponseHead): Tap | undefined {
  let all: Tap | undefined
  for (const interest of interests) {
    const tap = interest.watch?.(head)
    all = all === undefined || tap === undefined ? (all ?? tap) : both(all, tap)
  }
  return all
}

const both = (first: Tap, second: Tap): Tap => ({
  see: chunk => {
    first.see(chunk)
    second.see(chunk)
  },
})

/** Passes what one rewriter writes on to the next one. The last one writes the head. */
const joint = (next: Rewriter, out: AgentOutput): AnswerOutput => ({
  writeHead: length => out.describe(length),
  write: bytes => next.take(bytes),
  finish: () => next.end(),
  refuse: refusal => out.refuse(refusal),
  pause: () => out.pause(),
  resume: () => out.resume(),
})
