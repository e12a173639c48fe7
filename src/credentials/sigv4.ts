/** AWS Signature Version 4 in header fields: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
import { createHmac, hash } from 'node:crypto'
import { forgetOldest } from '../base/records.ts'
import { fieldName } from '../http/names.ts'
import { type CredentialMessage, splitQuery } from './placement.ts'

export interface AwsKeys {
  readonly keyId: string
  readonly secretKey: string
  /** Of temporary keys. */
  readonly sessionToken: string | undefined
}

export interface AwsScope {
  readonly region: string
  readonly service: string
}

export interface SignedMessage extends CredentialMessage {
  readonly method: string
  /** As the Host field has it. */
  readonly host: string
}

const algorithm = 'AWS4-HMAC-SHA256'
export const unsignedPayload = 'UNSIGNED-PAYLOAD'

export const sha256 = (data: string | Uint8Array): string => hash('sha256', data)

/** What the signature replaces. */
const ownFields: ReadonlySet<string> = new Set(['authorization', 'x-amz-date', 'x-amz-security-token'])

/**
 * The fields of a request with its signature, instead of the one that it has. Signed are the host, the type and the digest of
 * the body, and all fields of AWS.
 *
 * @param payload SHA-256 of the body, hex, or a word that stands for it
 * @param now milliseconds since the epoch
 */
export function signed(
  { method, host, path: target, fields: given }: SignedMessage,
  keys: AwsKeys,
  { scope, payload, now }: { readonly scope: AwsScope; readonly payload: string; readonly now: number },
): string[] {
  const fields: string[] = []
  /** By lower-cased name, as they are signed. */
  const values = new Map([['host', host]])
  const add = (name: string, value: string) => {
    fields.push(name, value)
    const { lower } = fieldName(name)
    if (!lower.startsWith('x-amz-') && lower !== 'content-type' && lower !== 'content-md5') return
    const before = values.get(lower)
    const text = value.trim().replaceAll(/ {2,}/g, ' ')
    values.set(lower, before === undefined ? text : `${before},${text}`)
  }
  for (let i = 0; i < given.length; i += 2) {
    if (!ownFields.has(fieldName(given[i]!).lower)) add(given[i]!, given[i + 1]!)
  }
  const time = timeOf(now)
  add('X-Amz-Date', time)
  if (keys.sessionToken !== undefined) add('X-Amz-Security-Token', keys.sessionToken)
  // S3 wants it in each request; the others compute it.
  if (scope.service === 's3' && !values.has('x-amz-content-sha256')) add('X-Amz-Content-Sha256', payload)
  const sorted = [...values.keys()].sort()
  const names = sorted.join(';')
  const lines = sorted.reduce((text, name) => `${text}${name}:${values.get(name)}\n`, '')
  const [path, query] = splitQuery(target)
  const head = `${method}\n${canonicalPath(path, scope)}\n${canonicalQuery(query)}\n${lines}\n${names}\n${payload}`
  const place = `${time.slice(0, 8)}/${scope.region}/${scope.service}/aws4_request`
  const signature = hmac(signingKey(keys, place), `${algorithm}\n${time}\n${place}\n${sha256(head)}`)
  const text = `${algorithm} Credential=${keys.keyId}/${place}, SignedHeaders=${names}, Signature=${signature}`
  fields.push('Authorization', text)
  return fields
}

let latest = { second: Number.NaN, time: '' }

/** Once a second; many requests are signed in one. */
function timeOf(now: number): string {
  const second = Math.floor(now / 1_000)
  if (second !== latest.second) {
    const time = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
    latest = { second, time }
  }
  return latest.time
}

/** S3 takes the path as it is; the others encode it once more, without empty segments. */
const canonicalPath = (path: string, { service }: AwsScope): string =>
  service === 's3' ? path : path.replaceAll(/^\/*|\/{2,}/g, '/').replaceAll(/[^\w.~/-]+/g, encode)

/** Sorts before all that `encode` leaves, so that pairs are sorted by name first. */
const separator = ' '

const canonicalQuery = (query: string): string =>
  query.match(/[^&]+/g)?.map(sortable).sort().join('&').replaceAll(separator, '=') ?? ''

/** A pair of the query, encoded. */
function sortable(pair: string): string {
  const at = pair.indexOf('=')
  const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
  return `${canonical(name)}${separator}${canonical(value)}`
}

const canonical = (text: string): string => (/[^\w.~-]/.test(text) ? encode(decode(text)) : text)

/** RFC 3986 section 2.3. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Bytes of a block of SHA-256. */
const block = 64

/**
 * HMAC (RFC 2104) by two digests, hex: `createHmac` makes an object for each call, which costs more than the digests do.
 *
 * @param text ASCII, of the one length that texts for the place have
 */
function hmac([inner, outer]: SigningKey, text: string): string {
  inner.write(text, block, 'latin1')
  outer.write(hash('sha256', inner, 'latin1'), block, 'latin1')
  return hash('sha256', outer)
}

/** The key in the blocks with which both digests begin, and room for what follows. */
type SigningKey = readonly [inner: Buffer, outer: Buffer]

/** Keys of the day, by place: four digests each. */
const signingKeys = new WeakMap<AwsKeys, Map<string, SigningKey>>()

function signingKey(keys: AwsKeys, place: string): SigningKey {
  const ofKeys = signingKeys.get(keys) ?? new Map<string, SigningKey>()
  const known = ofKeys.get(place)
  if (known !== undefined) return known
  const [date = '', ...rest] = place.split('/')
  const digest = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const key = rest.reduce(digest, digest(`AWS4${keys.secretKey}`, date))
  const length = `${algorithm}\n20260105T100000Z\n${place}\n`.length + 2 * key.length
  const pads = [Buffer.alloc(block + length, 0x36), Buffer.alloc(block + key.length, 0x5c)] as const
  for (const pad of pads) for (const [at, byte] of key.entries()) pad.writeUInt8(byte ^ pad[at]!, at)
  signingKeys.set(keys, ofKeys.set(place, pads))
  forgetOldest(ofKeys, 256)
  return pads
}
