import { fieldValues } from './headers.ts'

/** Longest wait that a client may ask for, seconds: below the usual time limits of proxies in between. */
export const longestWait = 55

const waitPattern = /(?:^|,)\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i

const asyncPattern = /(?:^|,)\s*respond-async\s*(?:$|[,;])/i

/** Seconds of `Prefer: wait=N` (RFC 7240 section 4.3), 55 at most; 0 when the client does not wait. */
export function preferredWait(rawHeaders: readonly string[]): number {
  return statedWait(rawHeaders, longestWait) ?? 0
}

/**
 * The same, but undefined when the client states no preference. `respond-async` alone is a wait of 0 (RFC 7240 section 4.1).
 *
 * @param longest maximum, seconds
 */
export function statedWait(rawHeaders: readonly string[], longest: number): number | undefined {
  const preferences = fieldValues(rawHeaders, 'prefer').join(',')
  const match = waitPattern.exec(preferences)
  if (match !== null) return Math.min(Number(match[1]), longest)
  return asyncPattern.test(preferences) ? 0 : undefined
}

/** The field that confirms the preference (RFC 7240 section 3); none for a client that does not wait. */
export function preferenceApplied(seconds: number): readonly string[] {
  return seconds === 0 ? [] : ['Preference-Applied', `wait=${seconds}`]
}
