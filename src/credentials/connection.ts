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
  askDeviceConsent,
  type BegunConsent,
  type BegunDevice,
  beginCodeConsent,
  beginDeviceConsent,
  type Consented,
  type ConsentRequest,
  finishCodeConsent,
  parametersIn,
} from './consent.ts'
import type { ClientUse, OwnClients } from './own-clients.ts'
import { withScopes } from './scopes.ts'
import type { GrantedBy, SealingKeys } from './stored-row.ts'

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
  /** With a code that the person enters at `url`: null where the server sends the tab back. */
  readonly device: DeviceCode | null
}

interface DeviceCode {
  readonly code: string
  /** Names the consent, as the parameter does that a server sends back. */
  readonly state: string
  /** The tab asks so often whether it is over. */
  readonly everySeconds: number
}

interface KeptDevice extends Pick<BegunDevice, 'deviceCode' | 'pause'> {
  /** The server is not asked before, milliseconds since the epoch. */
  readonly askAt: number
}

/** What is sealed until a consent ends. */
interface KeptConsent extends Omit<BegunConsent, 'url'>, CredentialKey {
  readonly terms: ConnectionTerms
  readonly session: string
  readonly device?: KeptDevice | undefined
}

export interface ConnectionRequest {
  readonly terms: ConnectionTerms
  readonly key: CredentialKey
  readonly personId: string
  /** Where the server sends the tab back; undefined: the person enters a code at the server instead. */
  readonly redirectUri: string | undefined
}

/** What is asked for, where, and as which client. */
export interface ConnectionTerms extends GrantedBy {
  /** Scopes of `StepUpScope`. */
  readonly more: readonly string[]
}

/** Rejects with a CredentialError when its server does not say where people consent. */
export async function beginConnection(
  setting: CredentialSetting,
  { key, personId, redirectUri, terms }: ConnectionRequest,
  parts: ConsentParts,
): Promise<BegunConnection> {
  const asked = <T>(ask: (request: ConsentRequest) => Promise<T>) =>
    parts.clients.use(withScopes(setting, terms.more), terms, use => ask(requestOf(use)))
  const session = randomBytes(32).toString('base64url')
  const now = parts.clock.now()
  const bound = { ...key, terms, session: digestOf(session) }
  if (redirectUri !== undefined) {
    const { url, ...begun } = await asked(request => beginCodeConsent(request, redirectUri))
    const expiresAt = now + consentMs
    await keep({ ...begun, ...bound }, { personId, expiresAt }, parts)
    return { url, session, expiresAt, device: null }
  }
  const { url, code, deviceCode, pause, lifeSeconds } = await asked(beginDeviceConsent)
  const expiresAt = now + Math.min(consentMs, lifeSeconds * 1_000)
  const state = randomBytes(32).toString('base64url')
  const device = { deviceCode, pause, askAt: now + pause * 1_000 }
  await keep({ ...bound, state, verifier: '', redirectUri: '', device }, { personId, expiresAt }, parts)
  return { url, session, expiresAt, device: { code, state, everySeconds: pause } }
}

async function keep(
  kept: KeptConsent,
  { personId, expiresAt }: { readonly personId: string; readonly expiresAt: number },
  { table, sealingKeys, clock }: ConsentParts,
): Promise<void> {
  const hash = digestOf(kept.state)
  const sealed = seal(sealingKeys[0], labelOf(hash, personId), Buffer.from(JSON.stringify(kept)))
  await table.keepConsent({ hash, agentId: personId, expiresAt, sealed }, { now: clock.now(), ...codeLimits })
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

/** The person has not decided yet: the tab asks again. */
export interface PendingConnection {
  readonly everySeconds: number
}

/** A consent that was taken: nobody can end it again. */
export interface TakenConnection {
  readonly key: CredentialKey
  readonly terms: ConnectionTerms
  /** Rejects with a CredentialError when the server refuses. */
  finish(setting: CredentialSetting, onUntaken: ConsentRequest['onUntaken']): Promise<Consented | PendingConnection>
}

/** Undefined when it was not begun, has ended, or is that of another person, tab or credential. It is used up all the same. */
export async function takeConnection(
  { name, personId, session, answer }: ConnectionAnswer,
  parts: ConsentParts,
): Promise<TakenConnection | undefined> {
  const { table, sealingKeys, clients, clock } = parts
  const hash = digestOf(answer.get('state') ?? '')
  const taken = await table.takeConsent(hash, clock.now())
  const plain = taken && unseal(sealingKeys, labelOf(hash, personId), taken.sealed)
  if (taken === undefined || plain === undefined) return undefined
  const { expiresAt } = taken
  // Written by `keep`.
  const kept = JSON.parse(plain.toString()) as KeptConsent
  const isTab = timingSafeEqual(Buffer.from(kept.session), Buffer.from(digestOf(session)))
  if (!isTab || kept.name !== name) return undefined
  const { terms, device } = kept
  return {
    key: { name, subject: kept.subject },
    terms,
    async finish(setting, onUntaken) {
      const asked = <T>(ask: (request: ConsentRequest) => Promise<T>) =>
        clients.use(withScopes(setting, terms.more), terms, use => ask({ ...requestOf(use), onUntaken }))
      if (device === undefined) return asked(request => finishCodeConsent(request, kept, answer))
      const isEarly = clock.now() < device.askAt
      const found = isEarly ? device.pause : await asked(request => askDeviceConsent(request, device))
      if (typeof found !== 'number') return found
      const askAt = isEarly ? device.askAt : clock.now() + found * 1_000
      await keep({ ...kept, device: { ...device, pause: found, askAt } }, { personId, expiresAt }, parts)
      return { everySeconds: found }
    },
  }
}

/** What another person has begun does not open. */
const labelOf = (hash: string, personId: string): string => `consent:${personId}:${hash}`

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const requestOf = ({ setting, parts }: ClientUse): ConsentRequest => ({
  ...{ setting, parts, authorizationUrl: setting.AuthorizationUrl, deviceUrl: setting.DeviceUrl },
  more: parametersIn(setting.Parameters),
  signal: AbortSignal.timeout(consentMs),
})
