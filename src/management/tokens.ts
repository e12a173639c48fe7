import { isRefusal } from '../errors.ts'
import { jsonReply } from '../http/respond.ts'
import type { GrantRequest } from '../tokens/grant.ts'
import { bodyOf, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** `POST /tokens` (spec 4.1). */
export function tokenHandlers({ grant, clientAddress, noteFailedLogin }: ManagementParts): Handlers['open'] {
  return {
    async issueToken(call) {
      const { req, requestId } = call
      const request = bodyOf<GrantRequest>(call)
      const address = clientAddress(req)
      const token = await grant(request, address)
      if (!isRefusal(token)) return jsonReply(200, token)
      noteFailedLogin({ code: token.refusal, agentId: request.agentId, address, requestId })
      return token
    },
  }
}
