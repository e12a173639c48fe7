import { fieldValues } from './headers.ts'

/** Longest wait that a client may ask for: below the usual time limits of what lies between, seconds. */
export const longestWait = 55

const waitPattern = /(?:^|,)\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i

/** Seconds of `Prefer: wait=N` (RFC 7240 section 4.3), 55 at most; 0 when the client does not wait. */
export function preferredWait(rawHeaders: readonly string[]): number {
  const match = waitPattern.exec(fieldValues(rawHeaders, 'prefer').join(','))
  return match === null ? 0 : Math.min(Number(match[1]), longestWait)
}

/** The field that says what became of the preference (RFC 7240 section 3); none for a client that does not wait. */
export function preferenceApplied(seconds: number): readonly string[] {
  return seconds === 0 ? [] : ['Preference-Applied', `wait=${seconds}`]
}
