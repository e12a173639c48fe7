import { refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { ChatIdentity } from '../storage/identities.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Accounts of people at services of chat. */
export function identityHandlers({
  registry,
  store,
  clock,
}: Pick<ManagementParts, 'registry' | 'store' | 'clock'>): Handlers['guarded'] {
  return {
    async listIdentities({ named }) {
      const agent = registry.get(named)
      return agent === undefined
        ? refuse('not_found')
        : jsonReply(200, { identities: await store.identities.of(agent.id) })
    },
    async assignIdentities(call) {
      const { identities } = bodyOf<{ readonly identities: readonly ChatIdentity[] }>(call)
      const subject = call.named.toLowerCase()
      const entry = { at: clock.now(), ...by(call), action: 'agent.identities', subject, details: {} }
      const unique = [...new Map(identities.map(one => [`${one.team} ${one.user}`, one])).values()]
      const result = await store.identities.set(subject, unique, entry)
      if (result === 'taken') return refuse('already_exists', 'Another agent has one of these accounts.')
      return result === 'notFound' ? refuse('not_found') : done
    },
  }
}
