import { isFor } from '../credentials/credentials.ts'
import type { CredentialKeeper } from '../credentials/keeper.ts'
import { viewOf } from '../credentials/view.ts'
import type { ManagementParts } from '../management/parts.ts'
import type { Base } from './base.ts'
import type { Upstreams } from './upstreams.ts'

interface ManagedCredentialParts extends Pick<Base, 'config' | 'clock' | 'store'> {
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
}

/** The credentials for the API. */
export function manageCredentials({
  config,
  clock,
  store,
  upstreams,
}: ManagedCredentialParts): ManagementParts['credentials'] {
  const keepers = upstreams.keptCredentials?.keepers ?? []
  const show = (keeper: CredentialKeeper) => viewOf(keeper, config.Upstreams, clock)
  return {
    list(agent) {
      if (agent === undefined) return keepers.map(show)
      const upstreams = config.Upstreams.filter(setting => isFor(setting, agent))
      return keepers.map(keeper => viewOf(keeper, upstreams, clock)).filter(({ hosts }) => hosts.length > 0)
    },
    async renew(subject, by) {
      const keeper = keepers.find(({ name }) => name === subject)
      if (keeper === undefined) return undefined
      const entry = { at: clock.now(), ...by, action: 'credential.renew', subject, details: {} }
      await store.audit.append(entry)
      await keeper.restart()
      return show(keeper)
    },
  }
}
