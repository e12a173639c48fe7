/**
 * Who calls: the token in a request, in the gateway's own field or where clients with static settings can put it; the agent that
 * it names; and tokens where none may be.
 */
import { refuseStatus } from '../../agents/agent.ts'
import { keyPrefix } from '../../base/agent-key.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { fieldValues } from '../../http/headers.ts'
import { fieldName } from '../../http/names.ts'
import { tokens } from '../../telemetry/layout.ts'
import { parseCompact } from '../../tokens/compact.ts'
import {
  asProxy,
  basicPassword,
  bearerToken,
  presentedToken,
  proxyToken,
  refuseMissing,
  refuseToken,
  refuseUnreadable,
  type TokenProblem,
  withBasic,
} from '../../tokens/problem.ts'
import type { Claims } from '../../tokens/verify.ts'
import type { Exchange, StepOutcome, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'

/**
 * Finds the agent behind the token (spec 5.1, 5.2). The token names the agent; the registry says what the agent may do now.
 */
export function authenticate(exchange: Exchange, parts: Parts): StepResult {
  const fenced = parts.fencedAs?.()
  if (fenced !== undefined) return refuse(fenced)
  const token = tokenOf(exchange, parts)
  if (typeof token !== 'string') return token
  exchange.token = token
  if (exchange.addressing.dropsCredentials) dropCredentials(exchange)
  const claims = parts.verifyToken(token, exchange.socket)
  // A token that was verified before is known at once.
  const isKnown = !(claims instanceof Promise)
  parts.metrics.count(tokens, isKnown && typeof claims !== 'string' ? 'hit' : 'miss')
  if (!isKnown) return claims.then(verified => findAgent(exchange, verified, parts))
  return findAgent(exchange, claims, parts)
}

function findAgent(exchange: Exchange, claims: Claims | TokenProblem, parts: Parts): StepOutcome {
  const agent = typeof claims === 'string' ? undefined : parts.agents.get(claims.sub)
  if (typeof claims === 'string' || agent === undefined) {
    const problem = typeof claims === 'string' ? claims : 'unknown_agent'
    return refuseToken(problem, tokenField(exchange, parts))
  }
  exchange.claims = claims
  exchange.agent = agent
  return refuseStatus(agent.status)
}

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
function tokenOf(exchange: Exchange, parts: Parts): string | Refusal {
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
  const encoded = lastRun.exec(value)?.[0] ?? ''
  const plain = value.includes(keyPrefix) ? value : Buffer.from(encoded, 'base64').toString('latin1')
  const keys = new Set(plain.match(keyPattern))
  const [key] = keys
  return keys.size > 0 ? (keys.size === 1 ? key : undefined) : ownText(basicPassword(value))
}

/** Each run is read once: anybody may send 16 KiB of it. */
const lastRun = /(?<![\w+/-])[\w+/-]+={0,2}$/
const keyPattern = /(?<![\w-])agw_[\w-]+/g

/**
 * A key or a JSON Web Token. Any other text may be a secret of the upstream, which the identity provider must not
 * receive.
 */
function ownText(text: string | undefined): string | undefined {
  return text?.startsWith(keyPrefix) || text?.startsWith('eyJ') ? text : undefined
}

/** The field that the token was in, as the configuration or its specification spells it. */
function tokenField({ tokenNames }: Exchange, { config }: Parts): string {
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
function dropCredentials(exchange: Exchange): void {
  const { req, fields, tokenNames } = exchange
  const isKept = fields.names.map(({ lower, folded }) => tokenNames.includes(folded) || !isSecretName(lower))
  req.rawHeaders = req.rawHeaders.filter((_, at) => isKept[at >> 1])
  exchange.fields = { ...fields, names: fields.names.filter((_, at) => isKept[at]) }
}

/** No token and no key of the gateway is shorter, characters: most values are skipped for this alone. */
const leastToken = 47
/** A JWT in compact form, at the start of a run of its characters, so that each run is read once. */
const compact = /(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}/g
const agentKey = /agw_[\w-]{43}/g
/** Maximum of tokens of this issuer, and keys, that are verified for one request. */
const maxVerified = 8
/** Percent-encoding is decoded at most this often: each server in a chain may decode once. */
const maxDecodings = 4

/**
 * Refuses a request that has a token of this gateway anywhere but in its own field: the upstream would get it, and could act
 * as the agent. For most requests it reads only the lengths of values. This step comes before the target is parsed, so that
 * the log never shows the token.
 */
export function refuseMisplaced(exchange: Exchange, parts: Parts): StepResult {
  const { tokenNames } = exchange
  const { rawHeaders } = exchange.req
  if (exchange.addressing.road !== undefined && hasOwnField(exchange, parts)) return misplaced
  // Opaque tokens of an identity provider may be shorter.
  const least = Math.min(leastToken, exchange.token.length)
  let suspects = suspectsIn(exchange.rawTarget, exchange)
  for (let i = 1; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i]!
    if (value.length < least || tokenNames.includes(fieldName(rawHeaders[i - 1]!).folded)) continue
    suspects = [...suspects, ...suspectsIn(value, exchange)]
  }
  return suspects.length === 0 ? undefined : judge(exchange, suspects, parts)
}

const misplaced = refuse('token_misplaced')
const none: readonly string[] = []

/**
 * Clients of the forward proxy do not need the field of `/proxy/`, whose value must never be sent on. But with a name that is
 * not ours, such as X-Api-Key, it belongs to the upstream there, unless it has a token.
 */
function hasOwnField({ fields }: Exchange, { config }: Parts): boolean {
  const { UseCustomHeader, CustomHeaderName } = config.Security.AgentAuth
  const { lower, folded: own } = fieldName(CustomHeaderName)
  return UseCustomHeader && lower.startsWith('gateway-') && fields.names.some(({ folded }) => folded === own)
}

/** Tokens in a text that the gateway may have issued. */
function suspectsIn(text: string, { token }: Exchange): readonly string[] {
  if (text.length < Math.min(leastToken, token.length)) return none
  const plain = decode(text)
  if (plain.includes(token)) return [token]
  const keys = plain.includes(keyPrefix) ? (plain.match(agentKey) ?? none) : none
  return plain.includes('eyJ') ? [...keys, ...(plain.match(compact) ?? none)] : keys
}

/** The text as an upstream may read it: the credentials of Basic, and percent-encoding undone. */
function decode(text: string): string {
  let plain = /^basic /i.test(text) ? Buffer.from(text.slice(6), 'base64').toString('latin1') : text
  for (let times = 0; times < maxDecodings && plain.includes('%'); times++) {
    plain = plain.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  return plain
}

/** The presented token is certainly misplaced. A key, or a token that names this issuer, is misplaced if it verifies. */
function judge(exchange: Exchange, suspects: readonly string[], parts: Parts): StepResult {
  if (suspects.includes(exchange.token)) return misplaced
  const { Issuer } = parts.config.Security.AgentAuth.TokenIssuance
  const ours = suspects.filter(text => text.startsWith(keyPrefix) || parseCompact(text)?.payload['iss'] === Issuer)
  if (ours.length === 0) return undefined
  if (ours.length > maxVerified) return misplaced
  return Promise.all(ours.map(text => parts.verifyToken(text))).then(
    (found): StepOutcome => (found.some(claims => typeof claims === 'object') ? misplaced : undefined),
  )
}
