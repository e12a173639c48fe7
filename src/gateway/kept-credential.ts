import type { CredentialSetting } from '../config/credentials.ts'
import type { Config } from '../config/schema.ts'
import { credentialEntry } from '../credentials/audit.ts'
import { CredentialKeeper, type KeeperParts } from '../credentials/keeper.ts'
import type { SourceParts } from '../credentials/obtain.ts'
import { type StoredType, sources } from '../credentials/sources.ts'
import type { CredentialError } from '../credentials/state.ts'
import { StoredGrant, type StoredGrantParts } from '../credentials/stored-grant.ts'
import type { Log } from '../log/log.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialKey, type CredentialNotes, keyText, parseKey, subjectFacts } from '../storage/credentials.ts'
import type { EventNote } from '../storage/events.ts'
import type { Store } from '../storage/store.ts'
import { credentialRenewals } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { consoleUrlOf } from './base.ts'
import type { CredentialKeepers, KeptCredential } from './credential-keepers.ts'
import { sealingKeys } from './keys.ts'

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

export function keptOf(
  setting: CredentialSetting,
  key: CredentialKey,
  { sourceParts, ...parts }: KeptParts,
): KeptCredential {
  const { Type } = setting
  const obtain: KeeperParts['obtain'] = async (signal, current) => {
    if (!isStored(Type)) return sources[Type](setting, { ...sourceParts, current }, signal)
    if (kept.grant === undefined) throw new Error('cannot happen: a credential is sent before the store is there')
    return kept.grant.obtain(signal)
  }
  const keeper = new CredentialKeeper(setting, { ...parts, obtain }, keyText(key))
  const kept: KeptCredential = { key, keeper, grant: undefined }
  return kept
}

const isStored = (type: CredentialSetting['Type']): type is StoredType => type === 'RefreshToken' || type === 'Connect'

export type GrantMaker = ReturnType<typeof createGrants>

/** From here on granted tokens are those of the store. */
export function createGrants(
  { config, store, identity, report }: CredentialStore,
  parts: SourceParts & { readonly clock: Clock },
) {
  const keys = sealingKeys(config, identity.tokens.secret)
  const { clock, secrets } = parts
  const own = { table: store.credentials, sealingKeys: keys, sourceParts: parts, clock, origin: consoleUrlOf(config) }
  const clients = async () => new (await import('../credentials/own-clients.ts')).OwnClients(own)
  return {
    sealingKeys: keys,
    /** What speaks with token servers is loaded when the first one is needed. */
    clients,
    /** Gives a credential what the store has of it, if it keeps such ones. */
    add(kept: KeptCredential) {
      const { keeper, key } = kept
      if (!isStored(keeper.setting.Type)) return
      const onChange: StoredGrantParts['onChange'] = (...what) => keeper.adopt(...what)
      const more = { table: store.credentials, sealingKeys: keys, onChange, report }
      kept.grant = new StoredGrant(keeper.setting, { clock, secrets, clients, ...more }, key.subject)
    },
  }
}

/** Changes that this gateway or another one has stored are in force here from now on. @param onGone called when an account is gone for good */
export async function followChanges(
  keepers: CredentialKeepers,
  { store }: CredentialStore,
  onGone: (kept: KeptCredential) => unknown,
): Promise<void> {
  await store.feed.credentials.follow({
    load: () => Promise.all(keepers.all.map(({ grant }) => grant?.follow(undefined))),
    async change(key, now) {
      const kept = keepers.find(key)
      await kept?.grant?.follow(now?.version)
      if (now === undefined && kept !== undefined) await onGone(kept)
    },
  })
}

/** What an upstream wants of a credential. */
interface WantedScopes {
  readonly scopes: readonly string[]
  readonly host: string
}

export interface AttemptParts {
  readonly clock: Clock
  /** Absent: nothing is logged or counted. */
  readonly log?: Log | undefined
  readonly metrics?: Metrics | undefined
}

/** Tells people how attempts end: in the audit trail, once it is there, only when it is another outcome than before. */
export function createAttemptNotes({ clock, log, metrics }: AttemptParts) {
  let stored: CredentialStore | undefined
  const onAttempt: KeeperParts['onAttempt'] = (text, problem, before, isUsable) => {
    const key = parseKey(text)
    const facts = { credential: key.name, ...subjectFacts(key.subject) }
    metrics?.count(credentialRenewals, problem?.kind ?? 'renewed')
    if (problem === undefined) {
      log?.debug(facts, 'a credential has a new value')
      return
    }
    log?.[isUsable ? 'warn' : 'error']({ ...facts, reason: problem.message }, 'a credential has no new value')
    if (problem.kind === before?.kind || stored === undefined) return
    const { store, report } = stored
    store.credentials.note(notesOf(key, problem, clock.now())).catch(error => {
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
    /** @param scopes that no upstream has wanted before, for this credential */
    onWanted(
      { name, subject }: CredentialKey,
      { setting, state }: CredentialKeeper,
      { scopes, host }: WantedScopes,
    ): void {
      const facts = { scope: scopes.join(' '), host }
      log?.warn(
        { credential: name, ...subjectFacts(subject), ...facts },
        'an upstream wants scopes that a credential lacks',
      )
      if (stored === undefined) return
      const { store, report } = stored
      const at = clock.now()
      const entry = credentialEntry({ name, subject }, { what: 'scopeWanted', at, facts })
      // The others are any text, of an upstream that is not trusted.
      const grantable = setting.Type === 'Connect' ? scopes.filter(one => state.grantable?.includes(one)) : []
      const cause = `${host} wants the scope ${grantable.join(' ')}: connect the account again with it.`
      store.credentials
        .note({ entry, ...(grantable.length > 0 && { event: neededEvent({ name, subject }, cause, at) }) })
        .catch(error => {
          report('it could not be recorded that an upstream wants scopes', error)
        })
    },
    useStore(store: CredentialStore): void {
      stored = store
    },
  }
}

function notesOf(key: CredentialKey, { kind, message }: CredentialError, at: number): CredentialNotes {
  const entry = credentialEntry(key, { what: 'failed', at, facts: { state: kind, problem: message } })
  return kind === 'needed' ? { entry, event: neededEvent(key, message, at) } : { entry }
}

function neededEvent({ name, subject }: CredentialKey, cause: string, at: number): EventNote {
  const data = { agentId: '', ...subjectFacts(subject), credential: name, cause }
  return { type: 'credentialNeeded', at, hitlId: null, data }
}
