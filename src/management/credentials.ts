import { refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import { by } from './agents.ts'
import { type Handlers, textsOf } from './call.ts'
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
      return renewed === undefined ? refuse('not_found') : jsonReply(200, renewed)
    },
  }
}
