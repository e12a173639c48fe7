import { setTimeout as sleep } from 'node:timers/promises'
import type { CredentialSetting } from '../config/credentials.ts'
import { type Clock, inTime } from '../runtime/clock.ts'
import type { CredentialKey, StoredCredential, StoredCredentialTable } from '../storage/credentials.ts'
import type { AuditEntry } from '../storage/store.ts'
import { credentialEntry } from './audit.ts'
import { limitOf, type Obtained, type SourceParts } from './obtain.ts'
import type { AskedToken, OwnClients } from './own-clients.ts'
import { grantableScopes } from './scopes.ts'
import { CredentialError } from './state.ts'
import {
  accessOf,
  broughtBy,
  endedRow,
  type Granted,
  grantedRow,
  isGrantedBy,
  isSame,
  isUsed,
  noRow,
  notGranted,
  notRenewable,
  type OpenedRow,
  openOrEmpty,
  openRow,
  type Revocable,
  revocable,
  rotatesAfter,
  type SealingKeys,
  type StoredValue,
  sealRow,
  seededRow,
  takenBackRow,
} from './stored-row.ts'
import type { Redeemed } from './token-requests.ts'

export interface StoredGrantParts extends Pick<SourceParts, 'secrets'> {
  readonly clock: Clock
  /** They speak with token servers: loaded when the first one is needed. */
  readonly clients: () => Promise<Pick<OwnClients, 'prepare' | 'redeem' | 'revoke'>>
  readonly table: StoredCredentialTable
  readonly sealingKeys: SealingKeys
  /** Called when the value is another one, before the change is in force: undefined when nothing may be sent any more. */
  readonly onChange: (value: StoredValue | undefined, problem: CredentialError | undefined) => Promise<unknown>
  readonly report: (what: string, error: unknown) => void
}

interface Unstored {
  readonly row: OpenedRow
  readonly stored: StoredCredential
  readonly entry: AuditEntry | undefined
}

/** The lease outlives the request of its gateway by this much, milliseconds. */
const leaseMarginMs = 20_000
/** Pause of a gateway that waits for another one, which the change itself ends, milliseconds. */
const lookAgainMs = 500
/** Longest wait until a new token is stored; it is used then, and stored later, milliseconds. */
const storeWithinMs = 2_000
/** Attempts of a person's change while gateways renew. */
const maxTries = 5

/**
 * The refresh token of a credential, and its access token, in the store: all gateways have the same. A refresh token is sent
 * by the gateway that has the lease of its version, and what it was exchanged for is the next version.
 */
export class StoredGrant {
  readonly #setting: CredentialSetting
  readonly #key: CredentialKey
  readonly #parts: StoredGrantParts
  /** The row whose access token this gateway sends. */
  #latest = noRow
  /** It is `#latest`, and the store has not taken it yet. */
  #unstored: Unstored | undefined
  #changed = Promise.withResolvers<void>()

  /** @param subject whose account it is; empty for a credential that all share */
  constructor(setting: CredentialSetting, parts: StoredGrantParts, subject = '') {
    this.#setting = setting
    this.#parts = parts
    this.#key = { name: setting.Name ?? '', subject }
  }

  /** Another access token than this gateway sends: that of a newer version, or one for the refresh token. */
  async obtain(signal: AbortSignal): Promise<Obtained> {
    const { clock } = this.#parts
    const deadline = clock.steady() + limitOf(this.#setting)
    const replaced = this.#latest.version
    do {
      if (!(await this.#storeLate()))
        throw new CredentialError('failing', 'The last token is not stored yet, so it cannot be renewed.')
      const row = await this.#seeded(await this.#read())
      if (row.version < this.#latest.version) continue
      const found = this.#taken(row, replaced) ?? (await this.#renewed(row, signal))
      if (found !== undefined) return found
    } while (clock.steady() < deadline)
    throw new CredentialError('failing', 'Another gateway renews the token, and has not ended in time.')
  }

  /**
   * A version was stored, here or by another gateway. In force when it resolves.
   *
   * @param version undefined: any may have been
   */
  async follow(version: number | undefined): Promise<void> {
    if (version !== undefined && version === this.#latest.version && this.#unstored === undefined) return
    try {
      const stored = await this.#parts.table.of(this.#key)
      const unstored = this.#unstored
      if (unstored !== undefined && isSame(unstored.stored, stored)) this.#unstored = undefined
      // What this gateway has replaces it.
      else if (unstored === undefined || (stored?.version ?? 0) >= unstored.row.version) await this.#adopt(stored)
    } catch (error) {
      // What is there may have been taken back.
      this.#latest = noRow
      this.#parts.report('the token of a credential could not be read', error)
      await this.#parts.onChange(undefined, new CredentialError('failing', 'The stored token cannot be read.'))
    } finally {
      this.#changed.resolve()
      this.#changed = Promise.withResolvers()
    }
  }

  /** Stores what the store did not take before. Call about every second. */
  async sweep(): Promise<void> {
    await this.#storeLate()
  }

  /** A person has granted access. In force everywhere when it resolves. */
  async connect(granted: Granted, entry: AuditEntry): Promise<void> {
    this.#revokeForeign(await this.#replace(row => grantedRow(row, granted), entry))
  }

  /** No gateway sends the token any more when it resolves. Returns what is to be revoked at the server. */
  async disconnect(entry: AuditEntry): Promise<Revocable | undefined> {
    // Another one of the settings counts as used, so that it does not connect the credential again.
    const seed = await this.#seed().catch(() => undefined)
    const unstored = revocable(this.#unstored?.row)
    const before = await this.#replace(row => takenBackRow(row, seed), entry)
    return unstored ?? revocable(before)
  }

  /** No gateway sends it any more: a server that does not answer is told to people alone. False: it is not revoked. */
  async revoke(revoked: Revocable): Promise<boolean> {
    try {
      return await (await this.#parts.clients()).revoke(this.#setting, revoked)
    } catch (error) {
      this.#parts.report('a token could not be revoked at its server', error)
      return false
    }
  }

  async #replace(change: (row: OpenedRow) => OpenedRow, entry: AuditEntry | undefined): Promise<OpenedRow> {
    for (let tries = 0; tries < maxTries; tries++) {
      const stored = await this.#parts.table.of(this.#key)
      const row = openOrEmpty(this.#parts.sealingKeys, stored)
      if (await this.#parts.table.put(this.#sealed(change(row)), { entry })) return row
    }
    const isThere = (await this.#parts.table.of(this.#key)) !== undefined
    throw new CredentialError('failing', isThere ? 'Gateways change it all the time. Try again.' : 'Its agent is gone.')
  }

  /** @param replaced version whose access token is refused, or ends soon */
  #taken(row: OpenedRow, replaced: number): Obtained | undefined {
    if (row.state === 'needed') throw notGranted(this.#setting)
    if (row.version !== this.#latest.version) this.#latest = row
    const value = row.version === replaced ? undefined : accessOf(this.#setting, row, this.#parts.clock.now())
    return value === undefined || value.isWorn ? undefined : this.#whileLatest(value)
  }

  /** Takes the first refresh token of the settings, unless it was used before. */
  async #seeded(row: OpenedRow): Promise<OpenedRow> {
    const seed = await this.#seed().catch(error => {
      if (row.state === 'needed') throw error
      this.#parts.report('the first token of a credential could not be read: the stored one is used', error)
    })
    if (seed === undefined || isUsed(row, seed)) return row
    const at = this.#parts.clock.now()
    const next = this.#sealed(seededRow(row, seed, broughtBy('settings', at, this.#setting)))
    const entry = credentialEntry(this.#key, { what: 'connected', at, facts: { from: 'settings' } })
    if (await this.#parts.table.put(next, { entry })) this.#revokeForeign(row)
    return this.#read()
  }

  async #seed(): Promise<string | undefined> {
    const { RefreshToken } = this.#setting
    return RefreshToken === undefined ? undefined : this.#parts.secrets.read(RefreshToken)
  }

  /** Sends the refresh token, if no other gateway does. Undefined: there is, or will be, another version. */
  async #renewed(row: OpenedRow, signal: AbortSignal): Promise<Obtained | undefined> {
    const { table, clock } = this.#parts
    const changed = this.#changed.promise
    const { refreshToken } = row.held
    if (refreshToken === undefined) throw notRenewable(this.#setting, row, clock.now())
    // The lease lasts for a request for a token: no document must be read meanwhile, or another gateway would send the same one.
    await (await this.#parts.clients()).prepare(this.#setting, signal)
    const now = clock.now()
    const lease = { ...this.#key, version: row.version, now, until: now + limitOf(this.#setting) + leaseMarginMs }
    if (!(await table.lease(lease))) {
      await Promise.race([changed, sleep(lookAgainMs, undefined, { signal })])
      return undefined
    }
    const redeemed = await this.#redeem(row, { refreshToken, before: now + leaseMarginMs }, signal)
    return redeemed && this.#keep(row, redeemed, now)
  }

  async #redeem(row: OpenedRow, asked: AskedToken, signal: AbortSignal): Promise<Redeemed | undefined> {
    try {
      const clients = await this.#parts.clients()
      return await clients.redeem(this.#setting, { ...asked, account: row.held.account }, signal)
    } catch (error) {
      if (!(error instanceof CredentialError && error.kind === 'needed')) throw error
      // The version that another gateway, or a person, has stored meanwhile may be valid.
      if (!(await this.#parts.table.put(this.#sealed(endedRow(row)), {}))) return undefined
      this.#revokeForeign(row)
      throw error
    }
  }

  /** @param at when it was asked for, milliseconds since the epoch */
  async #keep(row: OpenedRow, redeemed: Redeemed, at: number): Promise<Obtained | undefined> {
    const { value, lifetimeMs, refreshToken } = redeemed
    const until = lifetimeMs === Number.POSITIVE_INFINITY ? null : at + lifetimeMs
    const held = { ...row.held, refreshToken: refreshToken ?? row.held.refreshToken }
    const next: OpenedRow = {
      ...{ version: row.version + 1, state: 'ready', rotates: rotatesAfter(row, refreshToken) },
      held: { ...held, access: { token: value, at, until } },
    }
    const noted = { at: this.#parts.clock.now(), facts: { version: next.version } }
    const rotated = credentialEntry(this.#key, { what: 'renewed', ...noted })
    // A person has taken the grant back, or granted another one.
    if (this.#latest.version > row.version) return this.#discard(next)
    this.#latest = next
    this.#unstored = { row: next, stored: this.#sealed(next), entry: refreshToken === undefined ? undefined : rotated }
    // The grant is in this token alone: without the store it is used all the same.
    await inTime(this.#storeLate(), storeWithinMs, () => false)
    const grantable = grantableScopes(this.#setting, held.account)
    return this.#latest === next ? this.#whileLatest({ value, lifetimeMs, grantable }) : undefined
  }

  #whileLatest(value: Obtained): Obtained {
    const row = this.#latest
    return { ...value, isCurrent: () => this.#latest === row }
  }

  /** Stores the row that is not stored yet. False: the store is away. */
  async #storeLate(): Promise<boolean> {
    const unstored = this.#unstored
    if (unstored === undefined) return true
    const { table, report } = this.#parts
    try {
      if (!(await table.put(unstored.stored, { entry: unstored.entry }))) {
        // It is there, and the answer was lost; or a change of a person, which counts more.
        const stored = await table.of(this.#key)
        if (!isSame(unstored.stored, stored) || this.#latest !== unstored.row) await this.#adopt(stored)
      }
      if (this.#unstored === unstored) this.#unstored = undefined
      return true
    } catch (error) {
      report('a new token could not be stored: it is used, and stored later', error)
      return false
    }
  }

  /** It was replaced. What a server has granted that the settings name no more lives on there, and no other grant ends with it. */
  #revokeForeign(row: OpenedRow): void {
    const revoked = revocable(row)
    if (revoked !== undefined && !isGrantedBy(this.#setting, revoked.grantedBy ?? {})) void this.revoke(revoked)
  }

  /** `#latest` replaces it. Who took the grant back did not know its token; another grant may end with the token, and stays. */
  #discard(row: OpenedRow | undefined): undefined {
    const revoked = revocable(row)
    if (this.#latest.state === 'needed' && revoked !== undefined) void this.revoke(revoked)
  }

  async #adopt(stored: StoredCredential | undefined): Promise<void> {
    const row = openRow(this.#parts.sealingKeys, stored)
    this.#latest = row
    this.#discard(this.#unstored?.row)
    this.#unstored = undefined
    const isNeeded = row.state === 'needed' && row.version > 0
    await this.#parts.onChange(
      accessOf(this.#setting, row, this.#parts.clock.now()),
      isNeeded ? notGranted(this.#setting) : undefined,
    )
  }

  async #read(): Promise<OpenedRow> {
    return openRow(this.#parts.sealingKeys, await this.#parts.table.of(this.#key))
  }

  #sealed(row: OpenedRow): StoredCredential {
    return sealRow(this.#parts.sealingKeys, this.#key, row)
  }
}
