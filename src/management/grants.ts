import { escapeDeceptive } from '../base/deceptive.ts'
import type { Grants } from '../hitl/grants.ts'
import { jsonReply } from '../http/respond.ts'
import type { GrantRecord } from '../storage/store.ts'
import { done, type Handlers } from './call.ts'

/** Grants: listing and ending them. */
export function grantHandlers(
  grants: Pick<Grants, 'list' | 'revoke'>,
  agentName: (id: string) => string | undefined,
): Handlers['guarded'] {
  const show = (grant: GrantRecord) => {
    const { id, agentId, ...rest } = grant
    const name = agentName(agentId)
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
    async listGrants({ query }) {
      const agentId = query['agentId'] as string | undefined
      return jsonReply(200, (await grants.list(agentId?.toLowerCase())).map(show))
    },
    async revokeGrant({ params, caller, requestId }) {
      return (await grants.revoke(params['grantId']!, { reviewer: caller.agent, requestId })) ?? done
    },
  }
}
