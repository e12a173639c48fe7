/** Secrets that Vault or OpenBao makes for the gateway, and takes back when their lease ends: https://developer.hashicorp.com/vault/docs/concepts/lease */
import type { SecretSetting } from '../config/credentials.ts'
import { BackOff } from './back-off.ts'
import type { GivenBack } from './given-back.ts'
import { type Leased, readSecretUrl, renewLease, revokeLease, type SecretUrlParts, storeToken } from './secret-url.ts'

/** A lease is renewed when this part of it is over. */
const renewAfter = 2 / 3

interface Lease extends Leased {
  readonly setting: SecretSetting
  readonly text: string
  /** Of the token that it was read with: it ends with that. */
  readonly version: number
  /** Names of the secrets that are in the document. */
  readonly names: Set<string | undefined>
  readonly backOff: BackOff
  /** When it was given, or renewed last, steady milliseconds. */
  since: number
  /** How long it lasts from then on, milliseconds. */
  lastsMs: number
  isBusy: boolean
}

export interface LeaseParts extends SecretUrlParts {
  readonly givenBack: Pick<GivenBack, 'later'>
}

/** Documents of stores. One that is leased is read once, for all secrets in it, and then renewed. */
export class SecretLeases {
  readonly #parts: LeaseParts
  readonly #leases = new Map<string, Lease>()
  readonly #reading = new Map<string, Promise<string>>()
  readonly #changed = new Set<string>()

  constructor(parts: LeaseParts) {
    this.#parts = parts
  }

  /** The text of the document, as `readSecretUrl`. */
  read(setting: SecretSetting): Promise<string> {
    const key = keyOf(setting)
    const lease = this.#leases.get(key)
    if (lease !== undefined && this.#parts.clock.steady() < lease.since + lease.lastsMs) {
      lease.names.add(setting.Name)
      return Promise.resolve(lease.text)
    }
    return this.#take(setting, lease?.names ?? new Set()).then(text => {
      this.#leases.get(key)?.names.add(setting.Name)
      return text
    })
  }

  /** Names of the secrets that are other ones since the last call. */
  changed(): readonly string[] {
    const names = [...this.#changed]
    this.#changed.clear()
    return names
  }

  /** Renews what is due. Call about every second. */
  sweep(): void {
    for (const lease of this.#leases.values()) {
      if (lease.isBusy || !lease.backOff.isOver(this.#parts.clock.steady())) continue
      lease.isBusy = true
      void this.#look(lease)
        .catch(() => lease.backOff.fail(this.#parts.clock.steady()))
        .finally(() => {
          lease.isBusy = false
        })
    }
  }

  async #look(lease: Lease): Promise<void> {
    const { setting, version, lifetimeMs, isRenewable, id } = lease
    const { clock, givenBack } = this.#parts
    const token = await storeToken(setting, this.#parts)
    const now = clock.steady()
    const isSame = token.version === version
    if (isSame && now < lease.since + lease.lastsMs * renewAfter) return
    if (isSame && isRenewable) {
      const renewedMs = await renewLease(setting, id, this.#parts)
      // One near its greatest age gets less and less.
      if (renewedMs !== undefined && renewedMs >= lifetimeMs / 2) {
        Object.assign(lease, { since: now, lastsMs: renewedMs })
        lease.backOff.reset()
        return
      }
    }
    // It may have been read again at its end.
    if (this.#leases.get(keyOf(setting)) === lease) await this.#take(setting, lease.names)
    for (const name of lease.names) if (name !== undefined) this.#changed.add(name)
    givenBack.later(signal => revokeLease(setting, id, { ...this.#parts, signal }))
  }

  /** One reading of a document at a time: each may make another secret. */
  #take(setting: SecretSetting, names: Lease['names']): Promise<string> {
    const key = keyOf(setting)
    const reading = this.#reading.get(key) ?? this.#read(setting, names).finally(() => this.#reading.delete(key))
    this.#reading.set(key, reading)
    return reading
  }

  async #read(setting: SecretSetting, names: Lease['names']): Promise<string> {
    const since = this.#parts.clock.steady()
    const { text, lease, version } = await readSecretUrl(setting, this.#parts)
    if (lease === undefined) this.#leases.delete(keyOf(setting))
    else {
      const more = { setting, text, version, names, since, lastsMs: lease.lifetimeMs }
      this.#leases.set(keyOf(setting), { ...lease, ...more, backOff: new BackOff(), isBusy: false })
    }
    return text
  }
}

const keyOf = ({ FromUrl, Body, Credential }: SecretSetting): string => JSON.stringify([FromUrl, Body, Credential])
