/**
 * Clients that the gateway is at authorization servers where the settings name none: by the address of a document that it
 * serves (draft-ietf-oauth-client-id-metadata-document), or registered there (RFC 7591). What a registration gives is in the
 * store, sealed and shown to nobody; a person who begins a consent causes it, and no request of an agent does.
 */
import type { AuthorizationServer } from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialKey, clientSubject, type StoredCredentialTable } from '../storage/credentials.ts'
import type { AuditEntry } from '../storage/store.ts'
import { documentUrlOf, redirectUriOf } from './client-document.ts'
import { registeredClient } from './mcp-server.ts'
import { limitOf, type SourceParts } from './obtain.ts'
import { withGrantedScopes } from './scopes.ts'
import { CredentialError } from './state.ts'
import {
  type Granted,
  type GrantedBy,
  isGrantedBy,
  issuerIn,
  type OpenedRow,
  openOrEmpty,
  openRow,
  type RegisteredClient,
  type Revocable,
  type SealingKeys,
  sealRow,
  serverOf,
} from './stored-row.ts'
import { type Redeemed, redeem, revoke } from './token-requests.ts'
import { askWith, endpointOf } from './token-server.ts'

/** A client lasts for the consent that is begun with it, milliseconds. */
const leastLeftMs = 600_000
const neverAborts = new AbortController().signal

export interface OwnClientParts {
  readonly table: Pick<StoredCredentialTable, 'of' | 'put'>
  readonly sealingKeys: SealingKeys
  readonly sourceParts: SourceParts
  readonly clock: Pick<Clock, 'now'>
  /** Under which servers and people reach the console; undefined when the settings do not say. */
  readonly origin: string | undefined
}

/** A credential, as it is asked for by one client. */
export interface ClientUse {
  readonly setting: CredentialSetting
  readonly parts: SourceParts
}

/** What a refresh token is exchanged for, while its lease lasts. */
export interface AskedToken {
  readonly refreshToken: string
  /** The request for it must begin before, milliseconds since the epoch: secrets may come late. */
  readonly before: number
}

/** What is recorded of a registration. */
type NoteOf = (facts: AuditEntry['details']) => AuditEntry

export class OwnClients {
  readonly #parts: OwnClientParts

  constructor(parts: OwnClientParts) {
    this.#parts = parts
  }

  /**
   * The client for a consent that a person begins. It is registered first where that is needed.
   */
  async forConsent(setting: CredentialSetting, noteOf: NoteOf): Promise<GrantedBy> {
    return { clientId: await this.#clientFor(setting, noteOf), server: serverOf(setting) }
  }

  async #clientFor(setting: CredentialSetting, noteOf: NoteOf): Promise<string> {
    if (setting.ClientId !== undefined) return setting.ClientId
    const { sourceParts, origin } = this.#parts
    const { server } = await endpointOf(setting, sourceParts, { signal: neverAborts })
    const documentUrl = documentUrlOf(setting, origin)
    if (documentUrl !== undefined && server['client_id_metadata_document_supported'] === true) return documentUrl
    const stored = await this.#parts.table.of(keyOf(setting))
    const { version, held } = openOrEmpty(this.#parts.sealingKeys, stored)
    const { client } = held
    if (client !== undefined && this.#isOf(setting, client, leastLeftMs)) return client.id
    const registered = await this.#register(setting, server)
    const entry = noteOf({ issuer: server.issuer, clientId: registered.id })
    const next: OpenedRow = {
      version: version + 1,
      state: 'ready',
      rotates: 0,
      held: { seeds: [], client: registered },
    }
    if (await this.#put(setting, next, entry)) return registered.id
    throw new CredentialError('failing', 'Somebody else has registered the gateway at this moment. Try again.')
  }

  /**
   * Asks as the client to which something was granted. Rejects with a CredentialError when that client has ended, or the settings
   * name another server: what one has granted is sent to no other.
   */
  async use<T>(
    setting: CredentialSetting,
    { clientId, ...by }: GrantedBy,
    ask: (use: ClientUse) => Promise<T>,
  ): Promise<T> {
    const { sourceParts, origin } = this.#parts
    if (!isGrantedBy(setting, by)) throw endedClient(setting)
    if (setting.ClientId !== undefined) return ask({ setting, parts: sourceParts })
    if (clientId !== undefined && clientId === documentUrlOf(setting, origin))
      return ask({ setting: publicClient(setting, clientId), parts: sourceParts })
    const row = openRow(this.#parts.sealingKeys, await this.#parts.table.of(keyOf(setting)))
    const { client } = row.held
    if (client === undefined || client.id !== clientId || !this.#isOf(setting, client, 0)) throw endedClient(setting)
    const { id: ClientId, auth: ClientAuth, secret } = client
    const secrets = { read: async () => secret ?? '' }
    try {
      // Its secret goes to no other server than the one that gave it: `setting` has its issuer.
      return await ask({
        setting: { ...setting, ClientId, ClientAuth, Secret: 'registered' },
        parts: { ...sourceParts, secrets },
      })
    } catch (error) {
      // Its server has forgotten it: the next consent registers another one.
      if (error instanceof CredentialError && error.code === 'invalid_client')
        await this.#put(setting, { version: row.version + 1, state: 'needed', rotates: 0, held: { seeds: [] } })
      throw error
    }
  }

  /** Reads what documents say of the server, unless they were read before: it may take longer than a request for a token. */
  async prepare(setting: CredentialSetting, signal: AbortSignal): Promise<void> {
    await endpointOf(setting, this.#parts.sourceParts, { signal })
  }

  /** What a refresh token is exchanged for. */
  redeem(
    setting: CredentialSetting,
    { refreshToken, before, account }: Pick<Granted, 'account'> & AskedToken,
    signal: AbortSignal,
  ): Promise<Redeemed> {
    const granted = withGrantedScopes(setting, account)
    return this.use(granted, account ?? {}, ({ setting, parts }) =>
      redeem(setting, { ...parts, ownRequests: this.#until(before, parts) }, { refreshToken, signal }),
    )
  }

  #until(before: number, { ownRequests }: Pick<SourceParts, 'ownRequests'>): SourceParts['ownRequests'] {
    return {
      ask: async (...asked) => {
        if (this.#parts.clock.now() < before) return ownRequests.ask(...asked)
        throw new CredentialError('failing', 'What is needed to renew the token came too late.')
      },
    }
  }

  /** False: its server does not say where. That is the one that has granted it, which the settings may name no more. */
  revoke(setting: CredentialSetting, revoked: Revocable): Promise<boolean> {
    const { grantedBy = {} } = revoked
    const signal = AbortSignal.timeout(limitOf(setting))
    const ask = (use: ClientUse) => revoke(use.setting, use.parts, { ...revoked, signal })
    return isGrantedBy(setting, grantedBy)
      ? this.use(setting, grantedBy, ask)
      : this.#useFormer(setting, grantedBy, ask)
  }

  /** Asks the server of a grant of former settings. The secrets of today's go to no other server than theirs. */
  async #useFormer<T>(
    setting: CredentialSetting,
    { clientId, server = '' }: GrantedBy,
    ask: (use: ClientUse) => Promise<T>,
  ): Promise<T> {
    const { table, sealingKeys, sourceParts } = this.#parts
    const issuer = issuerIn(server)
    const isSame = issuer === issuerIn(serverOf(setting))
    const former = { ...setting, McpServer: undefined, ...(!isSame && { Issuer: issuer, TokenUrl: undefined }) }
    const { client } = openOrEmpty(sealingKeys, await table.of(keyOf(setting))).held
    const isRegistered = client?.id === clientId && client?.issuer === issuer
    if (isRegistered) return this.use({ ...former, ClientId: undefined }, { clientId }, ask)
    if (isSame) return this.use(former, { clientId }, ask)
    return ask({ setting: publicClient(former, clientId), parts: sourceParts })
  }

  /** Of this server, for the address that it sends people back to, and not at its end. */
  #isOf(setting: CredentialSetting, { issuer, redirectUri, endsAt }: RegisteredClient, leftMs: number): boolean {
    const isSame = issuer === setting.Issuer && redirectUri === this.#redirectUriOf(setting)
    return isSame && (endsAt === null || endsAt > this.#parts.clock.now() + leftMs)
  }

  #redirectUriOf({ Name = '' }: CredentialSetting): string {
    return redirectUriOf(Name, this.#parts.origin ?? '')
  }

  async #register(setting: CredentialSetting, server: AuthorizationServer): Promise<RegisteredClient> {
    const redirectUri = this.#redirectUriOf(setting)
    const ask = askWith(this.#parts.sourceParts.ownRequests, neverAborts, limitOf(setting))
    const client = await registeredClient(server, { redirectUri, isConfidential: true }, ask)
    return { ...client, issuer: setting.Issuer ?? '', redirectUri }
  }

  #put(setting: CredentialSetting, row: OpenedRow, entry?: AuditEntry): Promise<boolean> {
    const { table, sealingKeys } = this.#parts
    return table.put(sealRow(sealingKeys, keyOf(setting), row), { entry })
  }
}

const publicClient = (setting: CredentialSetting, clientId: string | undefined): CredentialSetting => ({
  ...setting,
  ...{ ClientId: clientId, ClientAuth: 'None' },
})

const keyOf = ({ Name: name = '' }: CredentialSetting): CredentialKey => ({ name, subject: clientSubject })

const endedClient = ({ Name }: CredentialSetting): CredentialError =>
  new CredentialError(
    'needed',
    `The server or the client to which ${Name} was granted is another one by now: connect the account again.`,
  )
