import type { KeyTerms, ShownKey } from '../agents/keys.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers, type ManagementCall } from './call.ts'
import { createOnce } from './idempotency.ts'
import type { ManagementParts } from './parts.ts'

/** Latest keys of an agent, revoked ones too, among which a repeat is looked for. */
const maxLooked = 200

/** Keys of agents, for clients with static header fields. */
export function keyHandlers({ keys, clock, store }: ManagementParts): Handlers['guarded'] {
  async function create(call: ManagementCall, id: Pick<KeyTerms, 'id'>): Promise<Reply | Refusal> {
    const { name, expiresAt: until = null } = bodyOf<{ readonly name: string; readonly expiresAt?: string | null }>(
      call,
    )
    const expiresAt = until === null ? null : Date.parse(until)
    if (expiresAt !== null && !(expiresAt > clock.now())) {
      return refuse('invalid_body', undefined, { errors: [{ field: 'expiresAt', message: 'must be in the future' }] })
    }
    const created = await keys.create(call.named, { ...id, name, expiresAt }, by(call))
    return isRefusal(created) ? created : jsonReply(201, { ...shown(created.shown), key: created.key })
  }

  return {
    createKey(call) {
      const subject = call.named.toLowerCase()
      return createOnce(call, {
        within: ['createKey', subject],
        // The trail also knows keys that were revoked: what used one must not go on with another.
        wasCreated: async id => {
          const { items } = await store.audit.list(
            { page: 1, pageSize: maxLooked },
            { subject, action: 'agent.addKey' },
          )
          return items.some(({ details }) => details['keyId'] === id)
        },
        onRepeat: 'Revoke the key, DELETE /keys/{keyId}, and create one with another Idempotency-Key.',
        create: id => create(call, id),
      })
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
