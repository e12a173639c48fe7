import type { CredentialSetting } from '../config/credentials.ts'
import type { CredentialKeeper } from '../credentials/keeper.ts'
import type { StoredGrant } from '../credentials/stored-grant.ts'
import { type CredentialKey, keyText, parseKey } from '../storage/credentials.ts'

/** A credential of `Credentials`, or one of its accounts. */
export interface KeptCredential {
  readonly key: CredentialKey
  readonly keeper: CredentialKeeper
  /** What the store has of it; undefined for types that it does not keep, and before the store is followed. */
  grant: StoredGrant | undefined
}

/** The credentials of the first thread: those that all share, and accounts from the first request that needs them. */
export class CredentialKeepers {
  readonly #settings: readonly CredentialSetting[]
  readonly #make: (setting: CredentialSetting, key: CredentialKey) => KeptCredential
  readonly #byKey = new Map<string, KeptCredential>()
  /** Those that all share. */
  readonly shared: readonly KeptCredential[]

  constructor(
    settings: readonly CredentialSetting[],
    make: (setting: CredentialSetting, key: CredentialKey) => KeptCredential,
  ) {
    this.#settings = settings
    this.#make = make
    this.shared = settings.flatMap(setting =>
      setting.Type === 'Connect' ? [] : [this.#add(setting, { name: setting.Name ?? '', subject: '' })],
    )
  }

  #add(setting: CredentialSetting, key: CredentialKey): KeptCredential {
    const kept = this.#make(setting, key)
    this.#byKey.set(keyText(key), kept)
    return kept
  }

  get all(): readonly KeptCredential[] {
    return [...this.#byKey.values()]
  }

  /** Undefined when no request has needed it yet. */
  find(key: string): KeptCredential | undefined {
    return this.#byKey.get(key)
  }

  of(text: string): KeptCredential {
    const key = parseKey(text)
    const setting = this.#settings.find(({ Name, Type }) => Name === key.name && Type === 'Connect')
    const found = this.#byKey.get(text) ?? (setting && this.#add(setting, key))
    if (found === undefined) throw new Error(`cannot happen: the credential ${text} is not configured`)
    return found
  }

  forget(key: string): void {
    this.#byKey.delete(key)
  }
}
