import type { Tone } from '../parts/marks.tsx'
import type { HitlRequest, PastRequest } from '../types.ts'

/** Colour of the state of a request. */
export function toneOf({ status, replay }: Pick<HitlRequest | PastRequest, 'status' | 'replay'>): Tone {
  if (status === 'Pending') return replay === 'unknown' ? 'warn' : 'accent'
  if (status === 'Denied') return 'bad'
  if (status !== 'Approved') return 'plain'
  return replay === 'failed' || replay === 'unknown' ? 'warn' : 'good'
}
