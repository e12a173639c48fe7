import type { By } from '../agents/registry.ts'
import { isForAgentToken } from '../config/credentials.ts'
import { isFor } from '../credentials/credentials.ts'
import { viewOf } from '../credentials/view.ts'
import type { ManagementParts } from '../management/parts.ts'
import type { AuditEntry } from '../storage/store.ts'
import type { Base } from './base.ts'
import type { KeptCredential } from './kept-credential.ts'
import type { Upstreams } from './upstreams.ts'

interface ManagedCredentialParts extends Pick<Base, 'config' | 'clock' | 'store' | 'report'> {
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
}

/** The credentials for the API. */
export function manageCredentials(parts: ManagedCredentialParts): ManagementParts['credentials'] {
  const { config, clock, store, upstreams } = parts
  const all = upstreams.keptCredentials?.all ?? []
  const find = (subject: string) => all.find(({ keeper }) => keeper.name === subject)
  const show = ({ keeper }: KeptCredential) => viewOf(keeper, config.Upstreams, clock)
  const entry = (action: string, subject: string, by: By): AuditEntry => ({
    ...{ at: clock.now(), ...by, action, subject, details: {} },
  })
  return {
    list(agent) {
      if (agent === undefined) return all.map(show)
      const upstreams = config.Upstreams.filter(setting => isFor(setting, agent))
      return all.map(({ keeper }) => viewOf(keeper, upstreams, clock)).filter(({ hosts }) => hosts.length > 0)
    },
    async renew(subject, by) {
      const found = find(subject)
      if (found === undefined) return undefined
      if (isForAgentToken(found.keeper.setting)) return 'ofAgents'
      await store.audit.append(entry('credential.renew', subject, by))
      await found.keeper.restart()
      return show(found)
    },
    async connect(subject, refreshToken, by) {
      const found = find(subject)
      if (found?.grant === undefined) return found && 'notStored'
      await found.grant.connect({ refreshToken }, entry('credential.connected', subject, by))
      return show(found)
    },
    async disconnect(subject, by) {
      const found = find(subject)
      if (found?.grant === undefined) return found && 'notStored'
      const token = await found.grant.disconnect(entry('credential.disconnected', subject, by))
      return { revoked: token !== undefined && (await found.grant.revoke(token)) }
    },
  }
}
