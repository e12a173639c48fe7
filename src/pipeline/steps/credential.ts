/** The token in a request: in the gateway's own field, or where clients with static settings can put it. */
import { keyPrefix } from '../../base/agent-key.ts'
import type { Refusal } from '../../base/refusals.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { fieldValues } from '../../http/headers.ts'
import { fieldName } from '../../http/names.ts'
import {
  asProxy,
  basicPassword,
  bearerToken,
  presentedToken,
  proxyToken,
  refuseMissing,
  refuseUnreadable,
  withBasic,
} from '../../tokens/problem.ts'
import type { Exchange } from '../exchange.ts'
import type { Parts } from '../parts.ts'

const authorization = 'authorization'
const proxyAuthorization = 'proxy-authorization'

/**
 * Fields of a virtual host that may carry a JSON Web Token, by their lower-case names, as people write them. A key is known by
 * its prefix in any field whose name stands for a secret.
 */
const tokenFields: ReadonlyMap<string, string> = new Map(
  ['Authorization', 'X-Api-Key', 'Api-Key', 'X-Goog-Api-Key', 'Private-Token'].map(name => [name.toLowerCase(), name]),
)

/** Finds the token text, and notes the names of the fields that are not sent upstream. */
export function tokenOf(exchange: Exchange, parts: Parts): string | Refusal {
  const { UseCustomHeader, CustomHeaderName, FallbackToAuthorization } = parts.config.Security.AgentAuth
  const raw = exchange.req.rawHeaders
  if (exchange.addressing.road !== undefined) return tokenOfProxyClient(exchange)
  if (UseCustomHeader) {
    const { lower, folded } = fieldName(CustomHeaderName)
    const values = fieldValues(raw, lower)
    exchange.tokenNames = [folded]
    if (values.length > 0) return presentedToken(values, CustomHeaderName)
  }
  if (isVirtual(exchange)) return tokenOfVirtualHost(exchange)
  if (UseCustomHeader && !FallbackToAuthorization) return refuseMissing(CustomHeaderName)
  exchange.tokenNames = [...exchange.tokenNames, authorization]
  const values = fieldValues(raw, authorization)
  const known = values.length === 1 ? tokenInAuthorization(values[0]!) : undefined
  return known ?? presentedToken(values, 'Authorization')
}

/** A client of the forward proxy has settings for a proxy (RFC 9110 section 11.7.2). */
function tokenOfProxyClient(exchange: Exchange): string | Refusal {
  exchange.tokenNames = [proxyAuthorization]
  const { tunnel } = exchange.addressing
  return tunnel?.token ?? proxyToken(fieldValues(exchange.req.rawHeaders, proxyAuthorization))
}

/** Clients of a virtual host have settings for its upstream alone. */
const isVirtual = ({ addressing }: Exchange): boolean => addressing.standsFor !== undefined

/** One field that may carry a token: its folded name, and the token if it has the form for one. */
interface Candidate {
  readonly name: string
  readonly text: string | undefined
}

/**
 * On a virtual host a key may be in any field with the name of a secret; the other ones are then meant for the upstream.
 * Without a key, the first of `tokenFields` that has the form of a token is taken.
 */
function tokenOfVirtualHost(exchange: Exchange): string | Refusal {
  const candidates = candidatesIn(exchange.req.rawHeaders)
  const keys = candidates.filter(({ text }) => text?.startsWith(keyPrefix))
  const [first = candidates.find(({ text }) => text !== undefined)] = keys
  if (candidates.length === 0) return refuseMissing('Authorization')
  if (first?.text === undefined) return refuseUnreadable('Authorization')
  const names = new Set(keys.length > 0 ? keys.map(({ name }) => name) : [first.name])
  exchange.tokenNames = [...exchange.tokenNames, ...names]
  // Other values of these fields, or another key: servers differ in which value they use.
  const isClear = candidates.every(({ name, text }) => !names.has(name) || text === first.text)
  return isClear ? first.text : refuseUnreadable('Authorization')
}

function candidatesIn(raw: readonly string[]): Candidate[] {
  const found: Candidate[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const { lower, folded } = fieldName(raw[i]!)
    const value = raw[i + 1]!
    if (lower === authorization) found.push({ name: folded, text: bearerToken(value) ?? tokenInAuthorization(value) })
    else if (tokenFields.has(lower)) found.push({ name: folded, text: ownText(value.trim()) })
    else if (value.startsWith(keyPrefix) && isSecretName(lower)) found.push({ name: folded, text: value.trim() })
  }
  return found
}

/**
 * The token in `Authorization` with another scheme than Bearer, or with none: a key, plain or as name or password of
 * credentials in Base64 (`token KEY`, `ApiKey <id:KEY>`, `Basic <KEY:>`), or a JSON Web Token as the password of Basic.
 * Undefined when there is none, or two keys.
 */
function tokenInAuthorization(value: string): string | undefined {
  const encoded = /[\w+/-]+={0,2}$/.exec(value)?.[0] ?? ''
  const plain = value.includes(keyPrefix) ? value : Buffer.from(encoded, 'base64').toString('latin1')
  const keys = new Set(plain.match(keyPattern))
  const [key] = keys
  return keys.size > 0 ? (keys.size === 1 ? key : undefined) : ownText(basicPassword(value))
}

const keyPattern = /(?<![\w-])agw_[\w-]+/g

/**
 * A key or a JSON Web Token. Any other text may be a secret of the upstream, which the identity provider must not
 * receive.
 */
function ownText(text: string | undefined): string | undefined {
  return text?.startsWith(keyPrefix) || text?.startsWith('eyJ') ? text : undefined
}

/** The field that the token was in, as the configuration or its specification spells it. */
export function tokenField({ tokenNames }: Exchange, { config }: Parts): string {
  const { CustomHeaderName } = config.Security.AgentAuth
  const name = tokenNames.at(-1)
  if (name === proxyAuthorization) return 'Proxy-Authorization'
  return name === undefined || name === fieldName(CustomHeaderName).folded
    ? CustomHeaderName
    : (tokenFields.get(name) ?? name)
}

/**
 * A 401 in a form that the client understands: a client of the forward proxy would take it for the upstream's. Under `/proxy/`
 * no password is asked for: a browser would take one from a link and send it with all that follows, in the origin of the
 * console.
 */
export function inFormOfClient(exchange: Exchange, refusal: Refusal): Refusal {
  if (refusal.refusal !== 'unauthenticated') return refusal
  if (exchange.addressing.road !== undefined) return asProxy(refusal)
  return isVirtual(exchange) ? withBasic(refusal) : refusal
}

/** Fields with the credentials of another upstream (request-line.ts) are neither sent nor seen by rules. */
export function dropCredentials(exchange: Exchange): void {
  const { req, fields, tokenNames } = exchange
  const isKept = fields.names.map(({ lower, folded }) => tokenNames.includes(folded) || !isSecretName(lower))
  req.rawHeaders = req.rawHeaders.filter((_, at) => isKept[at >> 1])
  exchange.fields = { ...fields, names: fields.names.filter((_, at) => isKept[at]) }
}
