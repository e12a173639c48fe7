import type { Ending } from './store.ts'

const replays = {
  inFlight: 'sending…',
  completed: 'sent',
  failed: 'sent, no answer',
  unknown: 'outcome unknown',
}

/** What became of a request, in a few words. */
export function endingText({ what, by, replay, responseStatus }: Ending): string {
  const who = by === undefined || by === '' ? '' : ` by ${by}`
  if (what !== 'approved') return `${what[0]?.toUpperCase()}${what.slice(1)}${who}`
  const status =
    replay === 'completed' && responseStatus != null ? `sent, ${responseStatus}` : replay && replays[replay]
  return `Approved${who}${status === undefined ? '' : `: ${status}`}`
}
