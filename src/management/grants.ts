import { escapeDeceptive } from '../base/deceptive.ts'
import { jsonReply } from '../http/respond.ts'
import type { GrantRecord } from '../storage/store.ts'
import { done, type Handlers, textsOf } from './call.ts'
import { someOf } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** Grants: listing and ending them. */
export function grantHandlers({ hitl: { grants }, registry }: ManagementParts): Handlers['guarded'] {
  const show = (grant: GrantRecord) => {
    const { id, agentId, ...rest } = grant
    const name = registry.get(agentId)?.name
    return {
      id,
      agentId,
      agentName: name === undefined ? null : escapeDeceptive(name),
      ...rest,
      rule: grant.rule === '' ? null : grant.rule,
      path: escapeDeceptive(grant.path),
      createdAt: new Date(grant.createdAt).toISOString(),
      expiresAt: new Date(grant.expiresAt).toISOString(),
    }
  }
  return {
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
