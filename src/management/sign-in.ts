import { summarise } from '../agents/agent.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import { isPrivileged } from '../storage/agents.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { SessionReply } from '../tokens/console.ts'
import type { GrantRequest } from '../tokens/grant.ts'
import { by } from './agents.ts'
import { bodyOf, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Tokens, and the sessions of the console (spec 4.1). */
export function signInHandlers(parts: ManagementParts): Handlers {
  const { registry, grant, console: signIn, clock, clientAddress, noteFailedLogin } = parts

  const session = (agent: AgentRecord, token: SessionReply): Reply => {
    const { id, name, ownerId } = summarise(agent, clock.now())
    return jsonReply(200, { ...token, fourEyes: parts.fourEyes(), agent: { id, name, ownerId, roles: agent.roles } })
  }

  return {
    open: {
      async issueToken(call) {
        const fenced = parts.fencedAs?.()
        if (fenced !== undefined) return refuse(fenced)
        const { req, requestId } = call
        const request = bodyOf<GrantRequest>(call)
        const address = clientAddress(req)
        const token = await grant(request, address)
        if (!isRefusal(token)) return jsonReply(200, token)
        noteFailedLogin({ code: token.refusal, agentId: request.agentId, address, requestId })
        return token
      },
      async openSession({ body, req, requestId }) {
        const fenced = parts.fencedAs?.()
        if (fenced !== undefined) return refuse(fenced)
        const { code } = bodyOf<{ readonly code: string }>({ body })
        const agent = registry.get((await signIn.takeCode(code)) ?? '')
        if (agent?.status === 'Active' && isPrivileged(agent)) return session(agent, await signIn.issue(agent))
        const address = clientAddress(req)
        noteFailedLogin({ code: 'unauthenticated', agentId: agent?.id, address, requestId })
        return refuse('unauthenticated', undefined, { cause: 'code' })
      },
    },
    guarded: {
      async createCode(call) {
        const { agent: wanted } = bodyOf<{ readonly agent?: string } | undefined>(call) ?? {}
        const agent = wanted === undefined ? call.caller.agent : find(parts, wanted)
        if (isRefusal(agent)) return agent
        const entry = { at: clock.now(), ...by(call), action: 'console.code', subject: agent.id, details: {} }
        const { code, expiresAt } = await signIn.openCode(agent.id, entry)
        // A caller that was revoked meanwhile gets nothing that signs somebody in.
        const problem = call.problemNow()
        if (problem !== undefined) return problem
        const { id, name } = agent
        return jsonReply(201, { code, expiresAt: new Date(expiresAt).toISOString(), agent: { id, name } })
      },
      async renewToken({ caller }) {
        const { agent, sessionEndsAt } = caller
        if (sessionEndsAt === undefined) return refuse('wrong_state', 'Only tokens of the console are renewed.')
        return session(agent, await signIn.issue(agent, sessionEndsAt))
      },
    },
  }
}

/** The only active agent with this id or name that may use the console. */
function find({ registry }: ManagementParts, wanted: string): AgentRecord | Refusal {
  const one = registry.get(wanted)
  const all = one === undefined ? registry.values() : [one]
  const found = all.filter(({ id, name }) => id === one?.id || name === wanted)
  const able = found.filter(agent => agent.status === 'Active' && isPrivileged(agent))
  const [agent] = able
  if (agent === undefined) {
    if (found.length === 0) return refuse('not_found', 'No agent has this name or id.')
    return refuse(
      'wrong_state',
      'Only an active agent with the role reviewer, auditor or admin signs in to the console.',
    )
  }
  return able.length === 1 ? agent : refuse('wrong_state', 'Several agents have this name. Use the id of one.')
}
