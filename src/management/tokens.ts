import type { IncomingMessage } from 'node:http'
import { isRefusal } from '../errors.ts'
import { jsonReply } from '../http/respond.ts'
import type { Grant, GrantRequest } from '../tokens/grant.ts'
import type { Handlers } from './call.ts'

/** `POST /tokens` (spec 4.1). `clientAddress` tells who is to be slowed down. */
export function tokenHandlers(grant: Grant, clientAddress: (req: IncomingMessage) => string): Handlers['open'] {
  return {
    async issueToken({ req, body }) {
      const token = await grant(body as GrantRequest, clientAddress(req))
      return isRefusal(token) ? token : jsonReply(200, token)
    },
  }
}
