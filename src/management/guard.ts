import type { IncomingMessage } from 'node:http'
import { agentProblem, refuseStatus } from '../agents/agent.ts'
import type { ApiOperation } from '../api/openapi.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { fieldValues } from '../http/headers.ts'
import { rateFields } from '../limits/rate-fields.ts'
import { keyIdOf } from '../tokens/agent-key.ts'
import { sessionClaim } from '../tokens/issue.ts'
import { presentedToken, refuseToken } from '../tokens/problem.ts'
import type { Caller } from './call.ts'
import { createOriginCheck } from './origin-check.ts'
import type { ManagementParts } from './parts.ts'

export interface Guard {
  /** Refuses what a browser was tricked into: a Host that is not ours, a change asked for by a foreign page. */
  checkOrigin(req: IncomingMessage): Refusal | undefined
  /** The caller, if it has one of the operation's roles. A missing role is recorded in the audit trail. */
  admit(req: IncomingMessage, operation: ApiOperation, requestId: string): Promise<Caller | Refusal>
  /** Why a caller that was let in may not go on, after a wait: status, roles and token must hold still. */
  problemNow(caller: Caller, operation: ApiOperation): Refusal | undefined
  /** Calls `onLost` when the caller may not go on: its agent was changed, or the gateway may lack changes. Returns what ends that. */
  watch(caller: Caller, operation: ApiOperation, onLost: () => void): () => void
}

export function createGuard(parts: ManagementParts): Guard {
  const problemNow: Guard['problemNow'] = ({ agent, selfOnly, keyId, keys, until }, { access }) => {
    const fenced = parts.fencedAs?.()
    if (fenced !== undefined) return refuse(fenced)
    const now = parts.registry.get(agent.id)
    if (now === undefined || parts.clock.now() >= until) return refuse('unauthenticated')
    const isVoid = keyId === undefined ? parts.tokenKeys() !== keys : !now.keys.some(({ id }) => id === keyId)
    if (isVoid) return refuse('unauthenticated')
    const granted = selfOnly || now.roles.some(role => access.includes(role))
    return agentProblem(now) ?? (granted ? undefined : refuse('forbidden'))
  }

  return {
    problemNow,
    watch: (caller, operation, onLost) => {
      const isLost = (id: string) => id === caller.agent.id && problemNow(caller, operation) !== undefined
      const ends = [parts.onFenced(onLost), parts.registry.subscribe(id => isLost(id) && onLost())]
      return () => {
        for (const end of ends) end()
      }
    },
    checkOrigin: createOriginCheck(parts),
    async admit(req, operation, requestId) {
      const caller = await inPace(req, requestId, parts)
      if (isRefusal(caller)) return caller
      const { agent, keyId } = caller
      const granted = agent.roles.some(role => operation.access.includes(role))
      if (granted || operation.access.includes('own')) return { ...caller, selfOnly: !granted }
      const details = { operation: operation.id, roles: agent.roles, ...(keyId === undefined ? {} : { keyId }) }
      const at = parts.clock.now()
      await parts.noteRefusal({
        at,
        actor: agent.id,
        action: 'management.refused',
        subject: operation.id,
        requestId,
        details,
      })
      const roles = operation.access.join(', ')
      if (keyId !== undefined)
        return refuse('forbidden', `This operation needs a token with one of the roles: ${roles}.`)
      return refuse('forbidden', `This operation needs one of the roles: ${roles}.`)
    },
  }
}

/** The caller, when it does not call too often. */
async function inPace(
  req: IncomingMessage,
  requestId: string,
  parts: ManagementParts,
): ReturnType<typeof authenticate> {
  const caller = await authenticate(req, parts)
  if (isRefusal(caller)) return caller
  const { id } = caller.agent
  const taken = parts.takeCall(id)
  const wait = await taken
  // While the fleet was asked, the caller may have been revoked.
  if (wait === 0) return typeof taken === 'number' ? caller : authenticate(req, parts)
  parts.noteRateLimited(id, requestId)
  const seconds = Math.ceil(wait / 1_000)
  const fields = rateFields(parts.callLimit(), 0, seconds)
  return refuse('rate_limited', undefined, { headers: ['Retry-After', String(seconds), ...fields] })
}

/** The active agent whose token the request carries (spec 5.3). */
async function authenticate(req: IncomingMessage, parts: ManagementParts): Promise<Omit<Caller, 'selfOnly'> | Refusal> {
  const fenced = parts.fencedAs?.()
  if (fenced !== undefined) return refuse(fenced)
  const token = presentedToken(fieldValues(req.rawHeaders, 'authorization'), 'Authorization')
  if (typeof token !== 'string') return token
  const keys = parts.tokenKeys()
  const claims = await parts.verify(token)
  if (typeof claims === 'string') return refuseToken(claims, 'Authorization')
  const agent = parts.registry.get(claims.sub)
  if (agent === undefined) return refuseToken('unknown_agent', 'Authorization')
  const session = claims[sessionClaim]
  const keyId = keyIdOf(claims)
  return (
    refuseStatus(agent.status) ?? {
      // Keys stay in settings and build systems for months, so they have no other role.
      agent: keyId === undefined ? agent : { ...agent, roles: agent.roles.filter(role => role === 'agent') },
      ...{ keyId, keys },
      until: claims.exp * 1_000,
      sessionEndsAt: typeof session === 'number' ? session * 1_000 : undefined,
    }
  )
}
