/** Secrets in stores that speak HTTP: Vault and OpenBao, those of the clouds, and others with one document a secret. */
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { CredentialSetting, SecretSetting } from '../config/credentials.ts'
import { hasContentCoding } from '../http/headers.ts'
import type { OwnAnswer, OwnRequests, PostMessage } from '../upstream/own-requests.ts'
import { keysIn } from './aws.ts'
import { sha256, signed } from './sigv4.ts'
import { CredentialError, type CredentialState, type FreshCredential, isFresh } from './state.ts'

export interface SecretUrlParts {
  readonly ownRequests: Pick<OwnRequests, 'ask'>
  /** Milliseconds since the epoch, and steady ones. */
  readonly clock: { now(): number; steady(): number }
  readonly credentials: readonly CredentialSetting[]
  /** The credential as it is after a renewal, if one is due. `refused`: version that the store has refused. */
  readonly need: (name: string, refused: number | undefined) => Promise<CredentialState>
  readonly signal: AbortSignal
}

/** What Vault says of a secret that it has made for the gateway. */
export interface Leased {
  readonly id: string
  /** Milliseconds. */
  readonly lifetimeMs: number
  readonly isRenewable: boolean
}

interface StoreDocument {
  readonly text: string
  readonly lease: Leased | undefined
  /** Of the token that it was read with. */
  readonly version: number
}

/** Rejects with a CredentialError, or another error whose message has no value. */
export async function readSecretUrl(setting: SecretSetting, parts: SecretUrlParts): Promise<StoreDocument> {
  const { FromUrl: url = '', Credential: name, Name } = setting
  const request = requestOf(setting, url)
  const send = async (state: FreshCredential | undefined): Promise<OwnAnswer> => {
    const headers = state === undefined ? request.headers : authorized(request, state, parts)
    return parts.ownRequests.ask({ ...request, headers }, parts.signal)
  }
  let state = name === undefined ? undefined : await usable(name, undefined, parts)
  let answer = await send(state)
  // Vault answers 403 to a token that has ended.
  if (state !== undefined && (answer.status === 401 || answer.status === 403)) {
    const renewed = await usable(state.name, state.version, parts)
    if (renewed.version !== state.version) {
      state = renewed
      answer = await send(state)
    }
  }
  const problem = problemOf(answer)
  if (problem !== undefined) throw new CredentialError('failing', `The store of the secret ${Name} ${problem}.`)
  const text = Buffer.from(answer.body).toString()
  return { text, lease: isOfVault(setting, parts) ? leaseIn(text) : undefined, version: state?.version ?? 0 }
}

const isOfVault = ({ Credential }: SecretSetting, { credentials }: SecretUrlParts): boolean =>
  credentials.some(({ Name, Type }) => Name === Credential && Type === 'Vault')

/** Undefined for what is stored: that has an empty id. */
function leaseIn(text: string): Leased | undefined {
  const found = parseJson(text)
  const { lease_id: id, lease_duration: seconds, renewable } = isObject(found) ? found : {}
  if (typeof id !== 'string' || id === '' || typeof seconds !== 'number' || seconds <= 0) return undefined
  return { id, lifetimeMs: seconds * 1_000, isRenewable: renewable === true }
}

/** The token of the store, renewed if that is due. Rejects when there is none. */
export const storeToken = ({ Credential = '' }: SecretSetting, parts: SecretUrlParts): Promise<FreshCredential> =>
  usable(Credential, undefined, parts)

/** How long it lasts from now on, milliseconds; undefined when it is not renewed. */
export async function renewLease(
  setting: SecretSetting,
  id: string,
  parts: SecretUrlParts,
): Promise<number | undefined> {
  const { status, body } = await askLease(setting, { what: 'renew', id }, parts)
  return status === 200 ? leaseIn(Buffer.from(body).toString())?.lifetimeMs : undefined
}

/** What it was given for ends at once. The store may not allow that: then it ends with its time. */
export const revokeLease = (setting: SecretSetting, id: string, parts: SecretUrlParts): Promise<OwnAnswer> =>
  askLease(setting, { what: 'revoke', id }, parts)

async function askLease(
  setting: SecretSetting,
  { what, id }: { readonly what: 'renew' | 'revoke'; readonly id: string },
  parts: SecretUrlParts,
): Promise<OwnAnswer> {
  const url = new URL(`/v1/sys/leases/${what}`, setting.FromUrl).href
  const request = requestOf({ ...setting, Body: JSON.stringify({ lease_id: id }) }, url)
  const headers = authorized(request, await storeToken(setting, parts), parts)
  return parts.ownRequests.ask({ ...request, headers }, parts.signal)
}

function problemOf({ status, fields }: OwnAnswer): string | undefined {
  if (status !== 200) return `answers with status ${status}`
  return hasContentCoding(fields) ? 'sent a compressed answer' : undefined
}

async function usable(name: string, refused: number | undefined, { need, clock }: SecretUrlParts) {
  const state = await need(name, refused)
  if (isFresh(state, clock.steady())) return state
  throw new CredentialError(state.problem?.kind ?? 'failing', `The credential ${name} of its store has no value.`)
}

type StoreRequest = PostMessage & { readonly body: string }

/** A document is read, or asked for with a body, as the stores of AWS want it. */
function requestOf({ Body }: SecretSetting, url: string): StoreRequest {
  const headers = ['Accept', 'application/json', 'Accept-Encoding', 'identity', 'User-Agent', 'agent-gateway']
  if (Body === undefined) return { method: 'GET', url, headers, body: '' }
  return { url, headers: [...headers, 'Content-Type', 'application/json'], body: Body }
}

/** Operations of AWS that read a secret, by service: each call names its own in a field. */
const awsTargets: Readonly<Record<string, string>> = {
  secretsmanager: 'secretsmanager.GetSecretValue',
  ssm: 'AmazonSSM.GetParameter',
}

function authorized(request: StoreRequest, state: FreshCredential, parts: SecretUrlParts): readonly string[] {
  const { name, value } = state
  const { Type, Services, Regions } = parts.credentials.find(({ Name }) => Name === name) ?? {}
  if (Type === 'Vault') return [...request.headers, 'X-Vault-Token', value]
  if (Type === 'Basic') return [...request.headers, 'Authorization', value]
  if (Type !== 'Aws') return [...request.headers, 'Authorization', `Bearer ${value}`]
  const { host, pathname, search } = new URL(request.url)
  const [service = '', region = ''] = [Services?.[0], Regions?.[0]]
  const kept = request.headers.map(text => (text === 'application/json' ? 'application/x-amz-json-1.1' : text))
  const fields = [...kept, 'X-Amz-Target', awsTargets[service] ?? '']
  const message = { method: request.method ?? 'POST', path: pathname + search, fields, host }
  const details = { scope: { service, region }, payload: sha256(request.body), now: parts.clock.now() }
  return signed(message, keysIn(state), details)
}
