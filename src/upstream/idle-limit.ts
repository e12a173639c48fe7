/** How long the body of an answer may stand still. */
export interface IdleLimits {
  readonly idleTimeoutMs: number
  /** The same for `text/event-stream`: a model that thinks sends nothing for minutes. */
  readonly eventStreamIdleMs: number
}

/** @param fields of the answer, flat */
export function idleLimitOf(fields: readonly string[], limits: IdleLimits): number {
  return isEventStream(fields) ? limits.eventStreamIdleMs : limits.idleTimeoutMs
}

function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() !== 'content-type') continue
    return /^[ \t]*text\/event-stream[ \t]*(?:;|$)/i.test(fields[i + 1] as string)
  }
  return false
}
