import { networkOf } from '../base/address.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { uuid } from '../config/formats.ts'
import { isPrivileged } from '../storage/agents.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { ConsoleSignIn, SessionReply } from './console.ts'
import type { Issue, TokenReply } from './issue.ts'
import type { LoginAttempt, Throttle } from './throttle.ts'

/** Body of POST /tokens (spec 4.1). */
export interface GrantRequest {
  readonly agentId?: string
  readonly clientSecret?: string
  readonly externalToken?: string
  /** Asks for a token that can be renewed, for an agent with a role that uses the console. */
  readonly console?: boolean
}

export interface GrantParts {
  /** By UUID in any letter case. */
  readonly agent: (id: string) => AgentRecord | undefined
  readonly trustOf: (agent: AgentRecord) => number
  /** Equally slow, and false, for an unknown agent. */
  readonly verifySecret: (id: string, secret: string) => Promise<boolean | Refusal>
  /** Whether the token of the identity provider is valid and belongs to the agent; absent when none is configured. */
  readonly verifyExternal: ((token: string, agent: AgentRecord) => Promise<boolean>) | undefined
  /** Id of the agent that a valid token of the identity provider is bound to. */
  readonly agentOfToken?: (token: string) => Promise<string | undefined>
  readonly issue: Issue
  readonly console: Pick<ConsoleSignIn, 'issue'>
  /** Failures per agent id and client network, and per client network: an address, or the /64 of an IPv6 address. */
  readonly perAgent: Throttle
  readonly perAddress: Throttle
  /** Called for each wrong credential of a known agent. */
  readonly onBadCredential?: ((agentId: string) => void) | undefined
}

/** Exchanges credentials for a token. `peer` is the address of the client. Rejects with StoreError. */
export type Grant = (request: GrantRequest, peer: string) => Promise<TokenReply | Refusal>

/** One text for every cause: a guesser must not learn which agents exist. */
const wrongCredentials =
  'The credentials are wrong, or the agent is not active. Check agentId and clientSecret or externalToken, or ask an admin.'

const isUuid = (text: string): boolean => uuid(text) === undefined

export function createGrant(parts: GrantParts): Grant {
  return async (request, peer) => {
    const id = (request.agentId ?? '').toLowerCase()
    const network = networkOf(peer)
    const keys = [
      [parts.perAddress, network],
      // Guesses must not lock out the agent itself, which calls from elsewhere. A text that is no id has no secret to
      // guess, and must not take up memory.
      ...(isUuid(id) ? [[parts.perAgent, `${id} ${network}`] as const] : []),
    ] as const
    const attempts = beginAll(keys)
    if (typeof attempts === 'number') return refuseAttempt(attempts)
    let failed = false
    try {
      // The fleet is asked only for attempts that are within the limit here.
      const waits = await Promise.all(attempts.map(attempt => attempt.confirm()))
      const wait = Math.max(...waits.map(seconds => seconds ?? 0))
      if (wait > 0) return refuseAttempt(wait)
      const agent = await authenticate(id, request, parts)
      failed = agent === undefined
      if (agent === undefined) return refuse('unauthenticated', wrongCredentials)
      if (isRefusal(agent)) return agent
      if (request.console === true && isPrivileged(agent)) return tokenOf(await parts.console.issue(agent))
      return await parts.issue({ id: agent.id, name: agent.name, trustScore: parts.trustOf(agent) })
    } finally {
      for (const attempt of attempts) attempt.end(failed)
    }
  }
}

/** Without the end of the session: the answer is that of every other token. */
function tokenOf({ endsAt: _, ...token }: SessionReply): TokenReply {
  return token
}

const refuseAttempt = (seconds: number): Refusal =>
  refuse('too_many_logins', undefined, { headers: ['Retry-After', String(seconds)] })

/** Begins an attempt in all of them or in none; seconds to wait if the limit is reached. */
function beginAll(keys: readonly (readonly [Throttle, string])[]): readonly LoginAttempt[] | number {
  const begun: LoginAttempt[] = []
  for (const [throttle, key] of keys) {
    const attempt = throttle.begin(key)
    if (typeof attempt !== 'number') begun.push(attempt)
    else {
      for (const one of begun) one.end(false)
      return attempt
    }
  }
  return begun
}

/** The active agent that proved its identity. Unknown agent, inactive agent and wrong secret cannot be distinguished. */
async function authenticate(
  named: string,
  request: GrantRequest,
  parts: GrantParts,
): Promise<AgentRecord | Refusal | undefined> {
  const id = named === '' ? await signedIn(request, parts) : named
  if (!isUuid(id)) return undefined
  const proof = await prove(id, request, parts)
  if (isRefusal(proof)) return proof
  // Read after the proof, which takes its time: the agent may have been revoked meanwhile.
  const agent = parts.agent(id)
  if (agent === undefined) return undefined
  if (!proof) parts.onBadCredential?.(agent.id)
  return proof && agent.status === 'Active' ? agent : undefined
}

/** People who come from the identity provider to the console do not know the id of their agent. */
async function signedIn({ console: isConsole, externalToken }: GrantRequest, parts: GrantParts): Promise<string> {
  if (isConsole !== true || externalToken === undefined) return ''
  return (await parts.agentOfToken?.(externalToken)) ?? ''
}

/** The external token first, then the secret (spec 4.1 rule 2). */
async function prove(id: string, request: GrantRequest, parts: GrantParts): Promise<boolean | Refusal> {
  const { clientSecret, externalToken } = request
  const agent = parts.agent(id)
  if (externalToken !== undefined && agent !== undefined && parts.verifyExternal !== undefined) {
    if (await parts.verifyExternal(externalToken, agent)) return true
  }
  return clientSecret === undefined ? false : parts.verifySecret(id, clientSecret)
}
