import type { ShownKey } from '../agents/keys.ts'
import { isRefusal, refuse } from '../errors.ts'
import { jsonReply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Keys of agents, for clients with static header fields. */
export function keyHandlers({ keys, clock }: ManagementParts): Handlers['guarded'] {
  return {
    async createKey(call) {
      const { name, expiresAt: until = null } = bodyOf<{ readonly name: string; readonly expiresAt?: string | null }>(
        call,
      )
      const expiresAt = until === null ? null : Date.parse(until)
      if (expiresAt !== null && !(expiresAt > clock.now())) {
        return refuse('invalid_body', undefined, { errors: [{ field: 'expiresAt', message: 'must be in the future' }] })
      }
      const created = await keys.create(call.named, { name, expiresAt }, by(call))
      return isRefusal(created) ? created : jsonReply(201, { ...shown(created.shown), key: created.key })
    },
    async listKeys(call) {
      const found = await keys.list(call.named)
      return isRefusal(found) ? found : jsonReply(200, found.map(shown))
    },
    async revokeKey(call) {
      return (await keys.revoke(call.named, by(call))) ?? done
    },
  }
}

function shown({ id, name, createdAt, expiresAt, lastUsedAt }: ShownKey) {
  return { id, name, createdAt: timeOf(createdAt), expiresAt: timeOf(expiresAt), lastUsedAt: timeOf(lastUsedAt) }
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
