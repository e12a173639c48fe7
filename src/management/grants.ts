import { escapeDeceptive } from '../base/deceptive.ts'
import type { GrantTerms } from '../hitl/model.ts'
import { jsonReply } from '../http/respond.ts'
import type { GrantRecord } from '../storage/store.ts'
import { bodyOf, done, type Handlers, replyOf, textsOf, timeText } from './call.ts'
import { createOnce } from './idempotency.ts'
import { someOf } from './list.ts'
import type { ManagementParts } from './parts.ts'
import { verdict } from './verdicts.ts'

/** Grants: giving them after the approval, listing and ending them. */
export function grantHandlers({ hitl: { grants, queue }, registry, store }: ManagementParts): Handlers['guarded'] {
  const show = (grant: GrantRecord) => {
    const { id, agentId, credentials: _, ...rest } = grant
    const name = registry.get(agentId)?.name
    return {
      id,
      agentId,
      agentName: name === undefined ? null : escapeDeceptive(name),
      ...rest,
      rule: grant.rule === '' ? null : grant.rule,
      path: escapeDeceptive(grant.path),
      createdAt: timeText(grant.createdAt),
      expiresAt: timeText(grant.expiresAt),
    }
  }
  return {
    grantFromRequest(call) {
      const { named: hitlId } = call
      return createOnce(store, call, {
        within: ['grantFromRequest', hitlId],
        noted: subject => ({ subject, action: 'hitl.grant' }),
        onRepeat: 'To give another grant, use another Idempotency-Key.',
        async create(id) {
          const given = await queue.grantLater(hitlId, {
            ...verdict(call),
            terms: { ...bodyOf<GrantTerms>(call), ...id },
          })
          return replyOf(given, show, 201)
        },
      })
    },
    async listGrants(call) {
      const { agentId } = textsOf(call)
      const filter = { ...someOf(call), ...(agentId !== undefined && { agentId: agentId.toLowerCase() }) }
      return jsonReply(200, (await grants.list(filter)).map(show))
    },
    async revokeGrant({ named, caller, requestId }) {
      return (await grants.revoke(named, { reviewer: caller.agent, requestId })) ?? done
    },
  }
}
