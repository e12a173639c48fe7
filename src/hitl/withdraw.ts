/**
 * Taking a held request back: its agent asks for it, or the call that waited for its outcome ended. Of a withdrawal and
 * an approval at the same moment the store lets one win.
 */
import { type Refusal, refuse } from '../errors.ts'
import type { HitlBrief } from '../storage/store.ts'
import { auditEntry, type HitlOptions } from './model.ts'
import { decided } from './verdict.ts'

export interface Withdrawal {
  readonly agentId: string
  readonly requestId: string | null
  /** `asked`: DELETE /hitl/{id}. `left`: its call ended. `cancelled`: notifications/cancelled of MCP. */
  readonly cause: 'asked' | 'left' | 'cancelled'
}

/** The withdrawn item, also when it was withdrawn before; `not_found` when the agent has no such request. */
export async function withdraw(options: HitlOptions, id: string, withdrawal: Withdrawal): Promise<HitlBrief | Refusal> {
  const { agentId, requestId, cause } = withdrawal
  const now = options.clock.now()
  const what = { action: 'hitl.withdraw', subject: id, details: { agentId, cause } }
  const entry = auditEntry(now, { actor: agentId, requestId }, what)
  const outcome = await options.store.hitl.withdraw(id, { agentId, now }, entry)
  if (outcome === 'notFound') return refuse('not_found')
  if ('lost' in outcome) return outcome.lost.status === 'Withdrawn' ? outcome.lost : decided(outcome.lost)
  options.events.publish('withdrawn', id, { agentId, cause })
  return outcome.withdrawn
}
