import { replayText } from '../request/outcome.ts'
import type { Ending } from './store.ts'

/** What became of a request, in a few words. */
export function endingText({ what, by, replay, responseStatus }: Ending): string {
  const who = by === undefined || by === '' ? '' : ` by ${by}`
  const state = what === 'approved' && replay !== undefined ? `: ${replayText(replay, responseStatus)}` : ''
  return `${what[0]?.toUpperCase()}${what.slice(1)}${who}${state}`
}
