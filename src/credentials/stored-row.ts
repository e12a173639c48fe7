/** Rows of granted tokens as they are sealed. */
import { hash } from 'node:crypto'
import type { CredentialSetting } from '../config/credentials.ts'
import { seal, unseal } from '../hitl/seal.ts'
import type { CredentialKey, CredentialVersion, StoredCredential } from '../storage/credentials.ts'
import type { Obtained } from './obtain.ts'
import { grantableScopes } from './scopes.ts'
import { CredentialError } from './state.ts'

/** The first one seals, all of them open. */
export type SealingKeys = readonly [Uint8Array, ...Uint8Array[]]

/** The account of a person, as far as people may see it. */
export interface AccountFacts {
  /** Id of the person who connected it. */
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** What its server granted; null when it did not say. */
  readonly scope: string | null
  /** Who it is at its server, as that says; null when it does not. */
  readonly login: string | null
  /** Client to which it was granted. */
  readonly clientId?: string | undefined
  /** Server that granted it, and for which one, as the settings name them (`serverOf`). */
  readonly server?: string | undefined
  /** Scopes of `StepUpScope` that were asked for, too. */
  readonly more?: readonly string[]
}

/** A client that the gateway has registered, and where. */
export interface RegisteredClient {
  readonly id: string
  readonly auth: 'Basic' | 'Post' | 'None'
  readonly secret: string | undefined
  /** Milliseconds since the epoch; null: its secret does not end. */
  readonly endsAt: number | null
  readonly issuer: string
  readonly redirectUri: string
}

/** What a person has granted. One of the tokens is there. */
export interface Granted {
  /** Absent: another access token needs another consent. */
  readonly refreshToken?: string | undefined
  readonly access?: { readonly token: string; readonly at: number; readonly until: number | null } | undefined
  readonly account?: AccountFacts | undefined
}

/** What is sealed of a row. */
interface HeldTokens extends Granted {
  /** SHA-256 of first refresh tokens of the settings that were used, the latest last: none is used twice. */
  readonly seeds: readonly string[]
  /** In the row of `clientSubject` alone. */
  readonly client?: RegisteredClient
}

/** A row that could be opened. */
export interface OpenedRow extends Omit<StoredCredential, 'sealed' | keyof CredentialKey> {
  readonly held: HeldTokens
}

export const noRow: OpenedRow = { version: 0, state: 'needed', rotates: 0, held: { seeds: [] } }

/** An access token as it is stored. */
export interface StoredValue extends Obtained {
  /** Milliseconds since the epoch. */
  readonly renewedAt: number
  /** Whether it ends soon, so that another one is worth a request to the server. */
  readonly isWorn: boolean
}

export function sealRow([key]: SealingKeys, of: CredentialKey, { held, ...row }: OpenedRow): StoredCredential {
  const sealed = seal(key, labelOf({ ...of, ...row }), Buffer.from(JSON.stringify(held)))
  return { ...of, ...row, sealed }
}

/** @throws CredentialError when it was sealed for another row or version, or with another key */
export function openRow(keys: SealingKeys, stored: StoredCredential | undefined): OpenedRow {
  if (stored === undefined) return noRow
  const { version, state, rotates, sealed } = stored
  const plain = unseal(keys, labelOf(stored), sealed)
  if (plain === undefined) {
    throw new CredentialError('failing', 'The stored token cannot be opened: it was sealed with another key.')
  }
  // Written by `sealRow`.
  return { version, state, rotates, held: JSON.parse(plain.toString()) as HeldTokens }
}

/** One that cannot be opened is of no use, and can be replaced as well. */
export function openOrEmpty(keys: SealingKeys, stored: StoredCredential | undefined): OpenedRow {
  try {
    return openRow(keys, stored)
  } catch {
    return { ...noRow, version: stored?.version ?? 0 }
  }
}

/** A copy of another row, of another subject, or of another version, does not open. No name and no version has a colon. */
const labelOf = ({ name, subject, version }: CredentialVersion): string =>
  subject === '' ? `credential:${name}:${version}` : `credential:${name}:${subject}:${version}`

/** Unknown before the first renewal of a grant, it counts as 1; a server that has rotated once may do so again. */
export const rotatesAfter = ({ held, rotates }: OpenedRow, newToken: string | undefined): 0 | 1 =>
  newToken !== undefined || (held.access !== undefined && rotates === 1) ? 1 : 0

/** Undefined when there is none that may be sent at `now`. */
export function accessOf(
  setting: CredentialSetting,
  { held: { access, account }, state }: OpenedRow,
  now: number,
): StoredValue | undefined {
  if (access === undefined || state === 'needed' || !isGrantedBy(setting, account ?? {})) return undefined
  const lifetimeMs = access.until === null ? Number.POSITIVE_INFINITY : access.until - now
  const isWorn = access.until !== null && lifetimeMs < Math.min(leastLeftMs, (access.until - access.at) / 2)
  if (lifetimeMs <= 0) return undefined
  const grantable = grantableScopes(setting, account)
  return { value: access.token, lifetimeMs, renewedAt: access.at, isWorn, grantable }
}

/** What ends a grant at its server. */
export interface Revocable {
  readonly token: string
  readonly hint: 'refresh_token' | 'access_token'
  readonly grantedBy?: GrantedBy | undefined
}

/** Where something was granted, and to whom. */
export type GrantedBy = Pick<AccountFacts, 'clientId' | 'server'>

/** The server that grants, and the one that the grant is for, as the settings name them. */
export const serverOf = ({ Issuer, TokenUrl, McpServer, Resource = McpServer }: CredentialSetting): string =>
  [Issuer ?? TokenUrl, Resource].filter(url => url !== undefined).join(' for ')

/** The server that grants, of a text of `serverOf`. */
export const issuerIn = (server: string): string => server.split(' for ')[0] ?? ''

/** What is known of a grant that an admin, or the settings, have brought. */
export const broughtBy = (by: string, at: number, setting: CredentialSetting): AccountFacts => ({
  ...{ by, at, scope: null, login: null },
  ...{ clientId: setting.ClientId, server: serverOf(setting) },
})

/** What one server has granted is sent to no other, and what it has granted for one server neither. */
export const isGrantedBy = (setting: CredentialSetting, { server }: GrantedBy): boolean =>
  server === undefined || server === serverOf(setting)

export const revocable = (row: OpenedRow | undefined): Revocable | undefined =>
  row && revocableOf(row.held, row.held.account)

export function revocableOf({ refreshToken, access }: Granted, by: GrantedBy | undefined): Revocable | undefined {
  const grantedBy = by && { clientId: by.clientId, server: by.server }
  if (refreshToken !== undefined) return { token: refreshToken, hint: 'refresh_token', grantedBy }
  return access && { token: access.token, hint: 'access_token', grantedBy }
}

/** A stored token with less left, or with less than half of a short life, milliseconds. */
const leastLeftMs = 60_000

export const isUsed = ({ held }: OpenedRow, seed: string): boolean => held.seeds.includes(digestOf(seed))

const withSeed = (seeds: readonly string[], seed: string): readonly string[] =>
  [...seeds.filter(known => known !== digestOf(seed)), digestOf(seed)].slice(-keptSeeds)

const keptSeeds = 8

/** The next version: a person has granted this. */
export const grantedRow = ({ version, held: { seeds } }: OpenedRow, granted: Granted): OpenedRow => ({
  ...{ version: version + 1, state: 'ready', rotates: 1 },
  held: { ...granted, seeds },
})

/** The next version: the settings have brought a first refresh token. */
export const seededRow = (row: OpenedRow, seed: string, account: AccountFacts): OpenedRow =>
  grantedRow({ ...row, held: { seeds: withSeed(row.held.seeds, seed) } }, { refreshToken: seed, account })

/** The next version: a person has taken the grant back. @param seed counts as used from here on */
export const takenBackRow = ({ version, held: { seeds } }: OpenedRow, seed: string | undefined): OpenedRow => ({
  ...{ version: version + 1, state: 'needed', rotates: 1 },
  held: { seeds: seed === undefined ? seeds : withSeed(seeds, seed) },
})

/** The next version: the token is good no more. */
export const endedRow = ({ version, held: { seeds, account } }: OpenedRow): OpenedRow => ({
  ...{ version: version + 1, state: 'needed', rotates: 0 },
  held: { seeds, account },
})

const digestOf = (seed: string): string => hash('sha256', seed)

/** Each is sealed with a nonce of its own. */
export const isSame = ({ sealed }: StoredCredential, found: StoredCredential | undefined): boolean =>
  found !== undefined && Buffer.from(found.sealed).equals(sealed)

export const notGranted = ({ Name }: CredentialSetting): CredentialError =>
  new CredentialError('needed', `A person must grant access: agent-gateway credential connect ${Name}.`)

/** Why a row without a refresh token gives no other token. Its token is sent until its end, although an upstream may refuse it. */
export const notRenewable = (setting: CredentialSetting, row: OpenedRow, now: number): CredentialError =>
  accessOf(setting, row, now) === undefined
    ? notGranted(setting)
    : new CredentialError('failing', 'The server gave no refresh token: connect it again when its token has ended.')
