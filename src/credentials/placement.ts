/** How credentials stand in a request, and how their values are kept out of its answer. */
import { fieldName } from '../http/names.ts'

/** The part of a request in which credentials stand. */
export interface CredentialMessage {
  /** Path and query. */
  readonly path: string
  /** Flat: name, value, name, value. */
  readonly fields: readonly string[]
}

/** Where a credential stands, as the entry in `Upstreams` says: a header field, or a parameter of the query. */
export interface CredentialPlace {
  readonly header: string
  readonly query: string | undefined
}

/** What an agent sends. */
interface SentFields {
  readonly target: { readonly query: string | undefined }
  readonly rawHeaders: readonly string[]
  readonly tokenNames: readonly string[]
}

/** Whether the agent sends the field or parameter, or one that an upstream may take for it. */
export function sendsItself(
  { header, query }: CredentialPlace,
  { target, rawHeaders, tokenNames }: SentFields,
): boolean {
  if (query !== undefined) return hasParameter(target.query, query)
  const own = fieldName(header).folded
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { folded } = fieldName(rawHeaders[i]!)
    if (folded === own && !tokenNames.includes(folded)) return true
  }
  return false
}

/** The request with a credential in its place; what stood there is removed. */
export function withCredential({ path, fields }: CredentialMessage, place: CredentialPlace, value: string) {
  if (place.query !== undefined) return { path: withParameter(path, place.query, value), fields }
  const own = fieldName(place.header).folded
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    if (fieldName(name).folded !== own) kept.push(name, fields[i + 1]!)
  }
  kept.push(place.header, value)
  return { path, fields: kept }
}

function withParameter(path: string, name: string, value: string): string {
  const [start, query] = splitQuery(path)
  const others = query.split('&').filter(pair => pair !== '' && !isParameter(pair, name))
  return `${start}?${[...others, `${name}=${encodeURIComponent(value)}`].join('&')}`
}

/** Whether the agent sends a parameter of this name itself. @param query undefined when there is none */
const hasParameter = (query: string | undefined, name: string): boolean =>
  query?.split('&').some(pair => isParameter(pair, name)) ?? false

/** Servers decode names, and some take them in any letter case. */
function isParameter(pair: string, name: string): boolean {
  const [[found = ''] = []] = new URLSearchParams(pair)
  return found.toLowerCase() === name.toLowerCase()
}

/** @param path path and query */
export function splitQuery(path: string): readonly [start: string, query: string] {
  const at = path.indexOf('?')
  return at < 0 ? [path, ''] : [path.slice(0, at), path.slice(at + 1)]
}

/**
 * What an answer must not show of a value: what stands behind the scheme of `Authorization`, and the value of each cookie, since
 * servers set them again one by one.
 *
 * @param prefix stands before the value
 */
export function secretsIn({ header, query }: CredentialPlace, prefix: string, value: string): readonly string[] {
  if (query !== undefined) return [value]
  if (prefix === '' && /authorization$/i.test(header)) return withWhole([value.replace(scheme, '')], value)
  if (!/^cookie$/i.test(header)) return [value]
  const cookies = (prefix + value).split(';').map(cookie => cookie.slice(cookie.indexOf('=') + 1).trim())
  return withWhole(cookies, value)
}

/** A part that is too short to be hidden by itself is hidden with all of the value. */
const withWhole = (parts: readonly string[], value: string): readonly string[] =>
  parts.some(part => part.length < leastEcho) ? [...new Set([...parts, value])] : parts

/** RFC 9110 section 11.4. */
const scheme = /^[\w!#$%&'*+.^`|~-]+ +/

/** A credential as it was sent, unless it was not. */
interface SentCredential {
  readonly sent: { readonly secrets: readonly string[] } | undefined
}

/** Shorter values stand in many fields by chance. */
const leastEcho = 8
const none = { secrets: [] }
const redacted = '[redacted]'

/**
 * The fields of an answer without the values that were added to its request: an upstream that echoes them would reveal them.
 */
export function withoutEchoes(
  fields: readonly string[],
  added: readonly SentCredential[],
): { readonly fields: readonly string[]; readonly echoes: number } {
  let kept: string[] | undefined
  let echoes = 0
  for (let at = 1; at < fields.length; at += 2) {
    const text = fields[at]!
    const clean = withoutValues(text, added)
    if (clean === text) continue
    kept ??= [...fields]
    kept[at] = clean
    echoes += 1
  }
  return { fields: kept ?? fields, echoes }
}

function withoutValues(text: string, added: readonly SentCredential[]): string {
  let rest = text
  for (const { sent: { secrets } = none } of added) {
    for (const secret of secrets) rest = withoutSecret(rest, secret)
  }
  return rest
}

function withoutSecret(text: string, secret: string): string {
  // Most fields are shorter than a token, encoded or not.
  if (secret.length < leastEcho || text.length < secret.length) return text
  const plain = text.replaceAll(secret, redacted)
  // Encoded it is the same, or has one of these signs.
  if (!/[%+]/.test(plain)) return plain
  const rest = plain.replaceAll(encodeURIComponent(secret), redacted)
  // In other letters, or with more signs encoded, it is not worth finding where it stands.
  const isLeft = decoded(rest).includes(secret) || decoded(rest.replaceAll('+', ' ')).includes(secret)
  return isLeft ? redacted : rest
}

/** Values are ASCII. */
const decoded = (text: string): string =>
  text.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** A credential, as far as people and records see it. */
interface PlacedCredential {
  readonly place: CredentialPlace
  readonly name: string | undefined
  readonly source: string
  readonly scope: { readonly service: string; readonly region: string } | undefined
}

/** Names of credentials, for people; undefined when none has one. */
export const namesOf = (picked: readonly PlacedCredential[] | undefined): string | undefined =>
  picked?.flatMap(({ name, source }) => (name === undefined ? [] : source)).join(' ') || undefined

/** What a request is sent with, so that another credential shows: never a value. Empty when it gets none. */
export const identitiesOf = (picked: readonly PlacedCredential[] | undefined): string =>
  (picked ?? []).map(identityOf).join(', ')

function identityOf({ place, source, name = source, scope }: PlacedCredential): string {
  const signed = scope === undefined ? '' : ` for ${scope.service} in ${scope.region}`
  // With the subject: approved for one account is not approved for another.
  return `${placeText(place)} from ${name}${signed}`
}

export const placeText = ({ header, query }: CredentialPlace): string => (query === undefined ? header : `?${query}`)
