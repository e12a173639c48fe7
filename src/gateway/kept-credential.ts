import type { CredentialSetting } from '../config/credentials.ts'
import type { Config } from '../config/schema.ts'
import { CredentialKeeper, type KeeperParts } from '../credentials/keeper.ts'
import type { SourceParts } from '../credentials/obtain.ts'
import { sources } from '../credentials/sources.ts'
import type { CredentialError } from '../credentials/state.ts'
import { StoredGrant, type StoredGrantParts } from '../credentials/stored-grant.ts'
import type { Log } from '../log/log.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CredentialNotes } from '../storage/credentials.ts'
import type { Store } from '../storage/store.ts'
import { credentialRenewals } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { sealingKeys } from './keys.ts'

/** A credential of `Credentials`. */
export interface KeptCredential {
  readonly keeper: CredentialKeeper
  /** What the store has of it; undefined for types that it does not keep, and before the store is followed. */
  grant: StoredGrant | undefined
}

/** Where granted tokens are, and what happened to credentials. Commands have no store, and send no credential. */
export interface CredentialStore {
  readonly config: Config
  readonly store: Pick<Store, 'credentials' | 'feed'>
  readonly identity: { readonly tokens: { readonly secret: Uint8Array } }
  readonly report: StoredGrantParts['report']
}

interface KeptParts extends Pick<KeeperParts, 'clock' | 'onState' | 'onAttempt'> {
  readonly sourceParts: SourceParts
}

export function keptOf(setting: CredentialSetting, { sourceParts, ...parts }: KeptParts): KeptCredential {
  const { Type } = setting
  const obtain: KeeperParts['obtain'] = async (signal, current) => {
    if (Type !== 'RefreshToken') return sources[Type](setting, { ...sourceParts, current }, signal)
    if (kept.grant === undefined) throw new Error('cannot happen: a credential is sent before the store is there')
    return kept.grant.obtain(signal)
  }
  const kept: KeptCredential = { keeper: new CredentialKeeper(setting, { ...parts, obtain }), grant: undefined }
  return kept
}

/** From here on granted tokens are those of the store. */
export async function followStore(
  all: readonly KeptCredential[],
  { config, store, identity, report }: CredentialStore,
  parts: SourceParts & { readonly clock: Clock },
): Promise<void> {
  const keys = sealingKeys(config, identity.tokens.secret)
  const grants = new Map<string, StoredGrant>()
  for (const kept of all) {
    const { keeper } = kept
    if (keeper.setting.Type !== 'RefreshToken') continue
    const onChange: StoredGrantParts['onChange'] = (...what) => keeper.adopt(...what)
    const more = { table: store.credentials, sealingKeys: keys, onChange, report }
    kept.grant = new StoredGrant(keeper.setting, { ...parts, ...more })
    grants.set(keeper.name, kept.grant)
  }
  if (grants.size === 0) return
  await store.feed.credentials.follow({
    load: () => Promise.all([...grants.values()].map(grant => grant.follow(undefined))),
    change: (name, now) => grants.get(name)?.follow(now?.version),
  })
}

interface AttemptParts {
  readonly clock: Clock
  readonly log?: Log | undefined
  readonly metrics?: Metrics | undefined
}

/** Tells people how attempts end: in the audit trail, once it is there, only when it is another outcome than before. */
export function createAttemptNotes({ clock, log, metrics }: AttemptParts) {
  let stored: CredentialStore | undefined
  const onAttempt: KeeperParts['onAttempt'] = (name, problem, before) => {
    metrics?.count(credentialRenewals, problem?.kind ?? 'renewed')
    if (problem === undefined) {
      log?.debug({ credential: name }, 'a credential has a new value')
      return
    }
    log?.error({ credential: name, reason: problem.message }, 'a credential has no new value')
    if (problem.kind === before?.kind || stored === undefined) return
    const { store, report } = stored
    store.credentials.note(notesOf(name, problem, clock.now())).catch(error => {
      report('it could not be recorded that a credential has failed', error)
    })
  }
  return {
    onAttempt,
    /** A token server does not take the token of an agent, which may have many: no word of it in the audit trail. */
    onRefused(name: string, { kind, message }: CredentialError, agentId: string): void {
      metrics?.count(credentialRenewals, kind)
      log?.warn(
        { credential: name, agentId, reason: message },
        'a token server does not exchange the token of an agent',
      )
    },
    useStore(store: CredentialStore): void {
      stored = store
    },
  }
}

function notesOf(name: string, { kind, message }: CredentialError, at: number): CredentialNotes {
  const details = { state: kind, problem: message }
  const entry = { at, actor: 'gateway', action: 'credential.failed', subject: name, requestId: null, details }
  if (kind !== 'needed') return { entry }
  const data = { agentId: '', credential: name, cause: message }
  return { entry, event: { type: 'credentialNeeded', at, hitlId: null, data } }
}
