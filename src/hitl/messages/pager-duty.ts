/** An event of PagerDuty (Events API v2): a request that waits triggers an incident, and its end resolves that. */
import type { HitlEvent } from '../events.ts'
import { fit, type Notice } from './notice.ts'

const triggers = ['pending', 'released'] as const
const resolves = ['approved', 'denied', 'withdrawn', 'expired'] as const
const isIn = (types: readonly string[], type: string): boolean => types.includes(type)

/** The events that incidents follow. */
export const incidentEvents = [...triggers, ...resolves] as const

export function pagerDutyMessage({ headline, facts, link }: Notice, { type, hitlId, data }: HitlEvent, key: string) {
  const isOver = isIn(resolves, type)
  return {
    ...{ routing_key: key, dedup_key: `agent-gateway ${hitlId ?? data['agentId']}` },
    event_action: isOver ? 'resolve' : 'trigger',
    payload: {
      summary: fit([headline, ...facts.slice(0, 1).map(([, value]) => value)].join(': ')),
      ...{ source: 'agent-gateway', severity: isIn(triggers, type) ? 'warning' : 'error' },
      custom_details: Object.fromEntries(facts.map(([name, value]) => [name, fit(value)])),
    },
    ...(link && !isOver && { links: [{ href: link, text: 'Open in the console' }] }),
  }
}
