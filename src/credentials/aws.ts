/** Credentials of AWS: the gateway signs in place of the agent, which has placeholder keys or none. */

import type { Readable } from 'node:stream'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import { fieldValues } from '../http/headers.ts'
import { chunkedLength, contentOf, withoutChunkFields } from './aws-chunks.ts'
import type { Obtained } from './obtain.ts'
import { type CredentialMessage, splitQuery } from './placement.ts'
import { type AwsKeys, type AwsScope, sha256, signed, unsignedPayload } from './sigv4.ts'
import { CredentialError, type FreshCredential } from './state.ts'

/** Keys as `credential_process` of the AWS command line prints them, with their end; or as Vault makes them. */
export function awsKeys(secret: string, { Name }: CredentialSetting, now: number): Obtained {
  const found = parseJson(secret)
  const named: Readonly<Record<string, unknown>> = isObject(found) ? found : {}
  const made: Readonly<Record<string, unknown>> = isObject(named['data']) ? named['data'] : {}
  const {
    AccessKeyId = made['access_key'],
    SecretAccessKey = made['secret_key'],
    SessionToken = made['session_token'] ?? made['security_token'],
    Expiration,
  } = named
  if (typeof AccessKeyId !== 'string' || typeof SecretAccessKey !== 'string') {
    const text = `The secret of ${Name} must be JSON with AccessKeyId and SecretAccessKey.`
    throw new CredentialError('failing', text)
  }
  const keys: AwsKeys = {
    ...{ keyId: AccessKeyId, secretKey: SecretAccessKey },
    sessionToken: typeof SessionToken === 'string' && SessionToken !== '' ? SessionToken : undefined,
  }
  const lifetimeMs = typeof Expiration === 'string' ? Date.parse(Expiration) - now : Number.POSITIVE_INFINITY
  if (lifetimeMs > 0) return { value: JSON.stringify(keys), lifetimeMs }
  throw new CredentialError('failing', `The keys of ${Name} have ended.`)
}

/** The keys in a value of `awsKeys`: the same ones for a state each time, for which signing keys are kept. They are gone with it. */
export function keysIn(state: Pick<FreshCredential, 'value'>): AwsKeys {
  const known = parsed.get(state)
  if (known !== undefined) return known
  const keys: AwsKeys = JSON.parse(state.value)
  parsed.set(state, keys)
  return keys
}

const parsed = new WeakMap<Pick<FreshCredential, 'value'>, AwsKeys>()

/** The part of a request that says what the agent has signed. */
interface AwsRequest {
  readonly rawHeaders: readonly string[]
  readonly target: { readonly query: string | undefined }
}

/** What to sign a request for: as the agent has signed it, in its field or in the URL; otherwise the first of the settings. */
export function scopeOf(
  { rawHeaders, target: { query = '' } }: AwsRequest,
  { Services, Regions }: CredentialSetting,
): AwsScope | Refusal {
  const inUrl = mayHaveScope.test(query) ? new URLSearchParams(query).get('X-Amz-Credential') : null
  const given = `${fieldValues(rawHeaders, 'authorization').join(' ')} ${inUrl ?? ''}`
  const [digest = ''] = fieldValues(rawHeaders, digestField)
  const [, region = Regions[0] ?? '', service = Services[0] ?? ''] =
    /\/\d{8}\/([a-z0-9-]+)\/([a-z0-9-]+)\/aws4_request/.exec(given) ?? []
  const isInChunks = digest.startsWith('STREAMING-') && digest !== unsignedTrailer
  const isRead = !isInChunks || (service === 's3' && chunkedLength(rawHeaders) !== undefined)
  if (ecdsa.test(given) || ecdsa.test(query) || !isRead) return refuse('signature_unsupported')
  if (Services.includes(service) && Regions.includes(region)) return { region, service }
  return refuse('credential_conflict', `The gateway does not sign for the service ${service} in the region ${region}.`)
}

/** The parameter, or signs of its name that are encoded. */
const mayHaveScope = /X-Amz-Credential=|%(?:2d|[4-7])/i

const ecdsa = /AWS4-ECDSA/
const digestField = 'x-amz-content-sha256'
const unsignedTrailer = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'

/** Whether the body must be held to be signed: the agent names no digest, and the service wants one. */
export const readsBody = ({ service }: AwsScope, rawHeaders: readonly string[]): boolean =>
  service !== 's3' && fieldValues(rawHeaders, digestField).length === 0

export interface AwsMessage extends CredentialMessage {
  readonly method: string
  /** A stream only if the agent names its digest, or none is needed. */
  readonly body: Buffer | Readable | null
}

/** A signed request. A body that was in chunks is another one, with its length. */
export interface AwsSigned extends CredentialMessage {
  readonly body?: Readable
  readonly bodyLength?: number
}

/** The request with the signature of the gateway instead of that of the agent. */
export function withSignature(
  message: AwsMessage,
  keys: AwsKeys,
  { scope, host, now }: { readonly scope: AwsScope; readonly host: string; readonly now: number },
): AwsSigned {
  const length = chunkedLength(message.fields)
  const fields = length === undefined ? message.fields : withoutChunkFields(message.fields)
  const path = withoutOwn(message.path)
  const [digest] = fieldValues(fields, digestField)
  const payload = digest ?? (scope.service === 's3' ? unsignedPayload : digestOf(message.body))
  const request = {
    path,
    fields: signed({ method: message.method, path, fields, host }, keys, { scope, payload, now }),
  }
  if (length === undefined || message.body === null) return request
  return { ...request, body: contentOf(message.body, length), bodyLength: length }
}

const ownParameters =
  /^X-Amz-(?:Algorithm|Credential|Date|Expires|SignedHeaders|Signature|Security-Token|Content-Sha256)(?:=|$)/i

/** Where a pair starts that may not stay: one of AWS, or an empty one. */
const changing = /(?:^|&)(?:X-Amz-|&|$)/i

function withoutOwn(path: string): string {
  const [start, query] = splitQuery(path)
  if (!changing.test(query)) return path
  const pairs = query.split('&').filter(pair => pair !== '' && !ownParameters.test(pair))
  return pairs.length === 0 ? start : `${start}?${pairs.join('&')}`
}

const noBody = sha256('')

function digestOf(body: AwsMessage['body']): string {
  if (body === null) return noBody
  if (body instanceof Uint8Array) return sha256(body)
  throw new Error('cannot happen: a body that must be signed was not held')
}
