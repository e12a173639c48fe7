import type { HitlRequest, PastRequest, Replay } from '../types.ts'

export type Decided = Pick<HitlRequest | PastRequest, 'status' | 'replay' | 'responseStatus'> &
  Partial<Pick<HitlRequest, 'decidedBy' | 'people'>>

/** The state of a request in a few words, as docs/reviewing.md lists them. */
export function outcomeOf({ status, replay, responseStatus, decidedBy, people = {} }: Decided): string {
  if (status === 'Pending') return replay === 'unknown' ? 'Pending: earlier outcome unknown' : status
  const name = people[decidedBy ?? ''] ?? ''
  const by = name === '' ? '' : ` by ${name}`
  if (status === 'Approved') return `Approved${by}: ${replayText(replay ?? 'unknown', responseStatus)}`
  return status === 'Denied' ? `Denied${by}` : status
}

/** What became of an approved request. */
export function replayText(replay: NonNullable<Replay>, responseStatus: number | null | undefined): string {
  switch (replay) {
    case 'inFlight':
      return 'in flight'
    case 'completed':
      return responseStatus == null ? replay : `${replay}, ${responseStatus}`
    case 'failed':
      return 'failed, no answer'
    case 'unknown':
      return 'outcome unknown'
  }
}
