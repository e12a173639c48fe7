import { keyPrefix } from '../../base/agent-key.ts'
import { refuse } from '../../base/refusals.ts'
import { fieldName } from '../../http/names.ts'
import { parseCompact } from '../../tokens/compact.ts'
import type { Exchange, StepOutcome, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'

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
