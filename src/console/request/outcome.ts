import type { HitlRequest, PastRequest } from '../types.ts'

type Decided = Pick<HitlRequest | PastRequest, 'status' | 'replay' | 'responseStatus'> &
  Partial<Pick<HitlRequest, 'decidedBy' | 'people'>>

/** What became of a request, in a few words. */
export function outcomeOf({ status, replay, responseStatus, decidedBy, people = {} }: Decided): string {
  const name = people[decidedBy ?? ''] ?? ''
  const by = name === '' ? '' : ` by ${name}`
  if (status === 'Pending') return replay === 'unknown' ? 'Waits; may have been sent' : 'Waits'
  if (status !== 'Approved') return status === 'Denied' ? `Denied${by}` : status
  switch (replay) {
    case 'inFlight':
      return `Approved${by}: sending…`
    case 'completed':
      return `Approved${by}: sent, ${responseStatus}`
    case 'failed':
      return `Approved${by}: sent, no answer came`
    default:
      return `Approved${by}: outcome unknown`
  }
}
