import type { KeyTerms, ShownKey } from '../agents/keys.ts'
import { type Refusal, refuseField } from '../base/refusals.ts'
import type { Reply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers, type ManagementCall, replyOf, timeOrNull } from './call.ts'
import { createOnce } from './idempotency.ts'
import type { ManagementParts } from './parts.ts'

/** Keys of agents, for clients with static header fields. */
export function keyHandlers({ keys, clock, store }: ManagementParts): Handlers['guarded'] {
  async function create(call: ManagementCall, id: Pick<KeyTerms, 'id'>): Promise<Reply | Refusal> {
    const { name, expiresAt: until = null } = bodyOf<{ readonly name: string; readonly expiresAt?: string | null }>(
      call,
    )
    const expiresAt = until === null ? null : Date.parse(until)
    if (expiresAt !== null && !(expiresAt > clock.now())) return refuseField('expiresAt', 'must be in the future')
    const created = await keys.create(call.named, { ...id, name, expiresAt }, by(call))
    return replyOf(created, ({ shown: facts, key }) => ({ ...shown(facts), key }), 201)
  }

  return {
    createKey(call) {
      const subject = call.named.toLowerCase()
      return createOnce(store, call, {
        within: ['createKey', subject],
        noted: () => ({ subject, action: 'agent.addKey' }),
        idIn: 'keyId',
        onRepeat: 'Revoke the key, DELETE /keys/{keyId}, and create one with another Idempotency-Key.',
        create: id => create(call, id),
      })
    },
    async listKeys(call) {
      return replyOf(await keys.list(call.named), found => found.map(shown))
    },
    async revokeKey(call) {
      return (await keys.revoke(call.named, by(call))) ?? done
    },
  }
}

function shown({ id, name, createdAt, expiresAt, lastUsedAt }: ShownKey) {
  return {
    id,
    name,
    createdAt: timeOrNull(createdAt),
    expiresAt: timeOrNull(expiresAt),
    lastUsedAt: timeOrNull(lastUsedAt),
  }
}
