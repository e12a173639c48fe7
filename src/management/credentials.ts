import { type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, type Handlers, textsOf } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Credentials of upstreams: how they are, never what they are. */
export function credentialHandlers({ credentials, registry }: ManagementParts): Handlers['guarded'] {
  return {
    listCredentials(call) {
      const { agentId } = textsOf(call)
      const agent = agentId === undefined ? undefined : registry.get(agentId)
      if (agentId !== undefined && agent === undefined) return refuse('not_found')
      return jsonReply(200, credentials.list(agent))
    },
    getCredential({ named }) {
      const found = credentials.list().find(({ name }) => name === named)
      return found === undefined ? refuse('not_found') : jsonReply(200, found)
    },
    async renewCredential(call) {
      const renewed = await credentials.renew(call.named, by(call))
      return renewed === 'ofAgents' ? refuse('wrong_state', ofAgents) : replyOf(renewed)
    },
    async connectCredential(call) {
      const { refreshToken } = bodyOf<{ readonly refreshToken: string }>(call)
      return replyOf(await credentials.connect(call.named, refreshToken, by(call)))
    },
    async disconnectCredential(call) {
      return replyOf(await credentials.disconnect(call.named, by(call)))
    },
  }
}

function replyOf(done: object | 'notStored' | undefined): Reply | Refusal {
  if (done === undefined) return refuse('not_found')
  return done === 'notStored' ? refuse('wrong_state', noToken) : jsonReply(200, done)
}

const ofAgents = 'Each agent has its own, for the token with which it calls: there is none to renew here.'
const noToken = 'Only a credential of type RefreshToken keeps a token.'
