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

/** What a signature is for. */
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
const hmac = (key: string | Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/**
 * The fields of a request with its signature. Signed are the host, the type and the digest of the body, and all fields of AWS.
 *
 * @param payload SHA-256 of the body, hex, or a word that stands for it
 * @param now milliseconds since the epoch
 */
export function signed(
  message: SignedMessage,
  keys: AwsKeys,
  { scope, payload, now }: { readonly scope: AwsScope; readonly payload: string; readonly now: number },
): string[] {
  const time = `${new Date(now).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const fields = [...message.fields, 'X-Amz-Date', time]
  if (keys.sessionToken !== undefined) fields.push('X-Amz-Security-Token', keys.sessionToken)
  // S3 wants it in each request; the others compute it.
  if (scope.service === 's3' && !hasField(fields, 'x-amz-content-sha256')) fields.push('X-Amz-Content-Sha256', payload)
  const canonical = canonicalFields(fields, message.host)
  const names = canonical.map(([name]) => name).join(';')
  const lines = canonical.map(([name, value]) => `${name}:${value}\n`).join('')
  const [path, query] = splitQuery(message.path)
  const head = [message.method, canonicalPath(path, scope), canonicalQuery(query), lines, names, payload].join('\n')
  const place = `${time.slice(0, 8)}/${scope.region}/${scope.service}/aws4_request`
  const signature = hmac(signingKey(keys, place), [algorithm, time, place, sha256(head)].join('\n')).toString('hex')
  const text = `${algorithm} Credential=${keys.keyId}/${place}, SignedHeaders=${names}, Signature=${signature}`
  return [...fields, 'Authorization', text]
}

const hasField = (fields: readonly string[], lower: string): boolean =>
  fields.some((name, at) => at % 2 === 0 && name.toLowerCase() === lower)

function canonicalFields(fields: readonly string[], host: string): (readonly [name: string, value: string])[] {
  const found = new Map([['host', host]])
  for (let i = 0; i < fields.length; i += 2) {
    const { lower } = fieldName(fields[i]!)
    if (!lower.startsWith('x-amz-') && lower !== 'content-type' && lower !== 'content-md5') continue
    const value = fields[i + 1]!.trim().replaceAll(/ +/g, ' ')
    const before = found.get(lower)
    found.set(lower, before === undefined ? value : `${before},${value}`)
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1))
}

/** S3 takes the path as it is; the others encode it once more, without empty segments. */
function canonicalPath(path: string, { service }: AwsScope): string {
  if (service === 's3') return path
  const segments = path.split('/').filter(segment => segment !== '')
  const end = segments.length > 0 && path.endsWith('/') ? '/' : ''
  return `/${segments.map(encode).join('/')}${end}`
}

function canonicalQuery(query: string): string {
  const pairs = query.split('&').filter(pair => pair !== '')
  return pairs
    .map(pair => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return [encode(decode(name)), encode(decode(value))] as const
    })
    .sort(([name, value], [other, second]) => compare(name, other) || compare(value, second))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

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

/** Keys of the day, by place: four digests each. */
const signingKeys = new WeakMap<AwsKeys, Map<string, Buffer>>()

function signingKey(keys: AwsKeys, place: string): Buffer {
  const ofKeys = signingKeys.get(keys) ?? new Map<string, Buffer>()
  const known = ofKeys.get(place)
  if (known !== undefined) return known
  const [date = '', ...rest] = place.split('/')
  const key = rest.reduce<Buffer>(hmac, hmac(`AWS4${keys.secretKey}`, date))
  signingKeys.set(keys, ofKeys.set(place, key))
  forgetOldest(ofKeys, 256)
  return key
}
