/**
 * Consents that a person begins at a page of the gateway. What ends one is in the store, sealed and good once; it is bound to the
 * person, and by a secret that is in no address to the tab of the browser. So neither can an attacker have a person end a
 * consent of the attacker, nor end that of a person.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { CredentialSetting } from '../config/credentials.ts'
import { seal, unseal } from '../hitl/seal.ts'
import type { Clock } from '../runtime/clock.ts'
import { codeLimits } from '../storage/codes.ts'
import type { CredentialKey, StoredCredentialTable } from '../storage/credentials.ts'
import {
  type BegunConsent,
  beginCodeConsent,
  type Consented,
  type ConsentRequest,
  finishCodeConsent,
  parametersIn,
} from './consent.ts'
import type { ClientUse, OwnClients } from './own-clients.ts'
import type { SealingKeys } from './stored-row.ts'

/** Time that a person has, milliseconds. */
const consentMs = 600_000

export interface ConsentParts {
  readonly table: Pick<StoredCredentialTable, 'keepConsent' | 'takeConsent'>
  readonly sealingKeys: SealingKeys
  readonly clients: Pick<OwnClients, 'use'>
  readonly clock: Pick<Clock, 'now'>
}

export interface BegunConnection {
  /** What the person opens. */
  readonly url: string
  /** For the tab that began it alone. */
  readonly session: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** What is sealed until a consent ends. */
interface KeptConsent extends Omit<BegunConsent, 'url'>, CredentialKey, Pick<AskedConnection, 'clientId'> {
  readonly session: string
}

interface AskedConnection {
  readonly key: CredentialKey
  readonly personId: string
  readonly redirectUri: string
  /** Undefined: that of the settings. */
  readonly clientId: string | undefined
}

/** Rejects with a CredentialError when its server does not say where people consent. */
export async function beginConnection(
  setting: CredentialSetting,
  { key, personId, redirectUri, clientId }: AskedConnection,
  { table, sealingKeys, clients, clock }: ConsentParts,
): Promise<BegunConnection> {
  const { url, ...begun } = await clients.use(setting, clientId, use => beginCodeConsent(requestOf(use), redirectUri))
  const session = randomBytes(32).toString('base64url')
  const hash = digestOf(begun.state)
  const kept: KeptConsent = { ...begun, ...key, clientId, session: digestOf(session) }
  const sealed = seal(sealingKeys[0], labelOf(hash, personId), Buffer.from(JSON.stringify(kept)))
  const now = clock.now()
  const expiresAt = now + consentMs
  await table.keepConsent({ hash, agentId: personId, expiresAt, sealed }, { now, ...codeLimits })
  return { url, session, expiresAt }
}

/** What a tab brings back. */
export interface ConnectionAnswer {
  /** Name of the credential, to whose address its server came back. */
  readonly name: string
  readonly personId: string
  readonly session: string
  /** Parameters that the server has added to the address. */
  readonly answer: URLSearchParams
}

/** A consent that was taken: nobody can end it again. */
export interface TakenConnection {
  readonly key: CredentialKey
  readonly clientId: string | undefined
  /** Rejects with a CredentialError when the server refuses. */
  finish(setting: CredentialSetting, onUntaken: ConsentRequest['onUntaken']): Promise<Consented>
}

/** Undefined when it was not begun, has ended, or is that of another person, tab or credential. It is used up all the same. */
export async function takeConnection(
  { name, personId, session, answer }: ConnectionAnswer,
  { table, sealingKeys, clients, clock }: ConsentParts,
): Promise<TakenConnection | undefined> {
  const hash = digestOf(answer.get('state') ?? '')
  const taken = await table.takeConsent(hash, clock.now())
  const plain = taken && unseal(sealingKeys, labelOf(hash, personId), taken.sealed)
  if (plain === undefined) return undefined
  // Written by `beginConnection`.
  const kept = JSON.parse(plain.toString()) as KeptConsent
  const isTab = timingSafeEqual(Buffer.from(kept.session), Buffer.from(digestOf(session)))
  if (!isTab || kept.name !== name) return undefined
  return {
    key: { name, subject: kept.subject },
    clientId: kept.clientId,
    finish: (setting, onUntaken) =>
      clients.use(setting, kept.clientId, use => finishCodeConsent({ ...requestOf(use), onUntaken }, kept, answer)),
  }
}

/** What another person has begun does not open. */
const labelOf = (hash: string, personId: string): string => `consent:${personId}:${hash}`

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const requestOf = ({ setting, parts }: ClientUse): ConsentRequest => ({
  ...{ setting, parts, authorizationUrl: setting.AuthorizationUrl },
  more: parametersIn(setting.Parameters),
  signal: AbortSignal.timeout(consentMs),
})
