import { refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import { by } from './agents.ts'
import type { Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Credentials of upstreams: how they are, never what they are. */
export function credentialHandlers({ credentials }: ManagementParts): Handlers['guarded'] {
  return {
    listCredentials() {
      return jsonReply(200, credentials.list())
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
