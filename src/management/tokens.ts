import type { IncomingMessage } from 'node:http'
import { isRefusal, type RefusalCode } from '../errors.ts'
import { jsonReply } from '../http/respond.ts'
import type { Grant, GrantRequest } from '../tokens/grant.ts'
import type { Handlers } from './call.ts'

/** A call of `POST /tokens` that got no token. */
export interface FailedLogin {
  readonly code: RefusalCode
  /** As the client sent it. */
  readonly agentId: string | undefined
  readonly address: string
  readonly requestId: string
}

export interface TokenCallParts {
  readonly grant: Grant
  /** Address of the client: who is slowed down after failures. */
  readonly clientAddress: (req: IncomingMessage) => string
  readonly noteFailedLogin: (failed: FailedLogin) => void
}

/** `POST /tokens` (spec 4.1). */
export function tokenHandlers({ grant, clientAddress, noteFailedLogin }: TokenCallParts): Handlers['open'] {
  return {
    async issueToken({ req, body, requestId }) {
      const request = body as GrantRequest
      const address = clientAddress(req)
      const token = await grant(request, address)
      if (!isRefusal(token)) return jsonReply(200, token)
      noteFailedLogin({ code: token.refusal, agentId: request.agentId, address, requestId })
      return token
    },
  }
}
