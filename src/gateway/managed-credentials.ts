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
    list: () => keepers.map(show),
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
