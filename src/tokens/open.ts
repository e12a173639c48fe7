import type { Refusal } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord, CodeTable } from '../storage/store.ts'
import { createKeyVerifier, type KeyVerifierParts, type KnownKey } from './agent-key.ts'
import { createConsoleSignIn } from './console.ts'
import { createExternal } from './external.ts'
import { createGrant, type GrantParts } from './grant.ts'
import type { SubmitForm } from './introspection.ts'
import { createIssuer } from './issue.ts'
import { openSigningKeys } from './key.ts'
import type { FetchDocument } from './keyset.ts'
import { createThrottle, type FleetAttemptLimit } from './throttle.ts'
import { createVerifier, verifyByKind } from './verify.ts'

/** The part of the registry that checks tokens. */
export interface KnownAgents {
  /** By UUID in any letter case. */
  get(id: string): AgentRecord | undefined
  bySubject(subject: string): AgentRecord | undefined
  byKeyHash(hash: string): KnownKey | undefined
}

/** The part that issues them. */
export interface Agents extends KnownAgents {
  /** Live trust in [0, 1]. */
  trustOf(agent: AgentRecord): number
  /** Equally slow, and false, for an unknown agent. */
  verifySecret(id: string, secret: string): Promise<boolean | Refusal>
}

export interface CheckOptions {
  readonly settings: Config['Security']['AgentAuth']
  /** Folder of signing.key. */
  readonly dataDirectory: string
  /** Whether signing.key may be made; it may when absent. */
  readonly mayMakeKey?: boolean
  readonly clock: Clock
  readonly agents: KnownAgents
  readonly fetchDocument: FetchDocument
  /** Asks it about opaque tokens. */
  readonly submitForm: SubmitForm
  readonly onKeyUse: KeyVerifierParts['onUse']
  /** Called with the reason why the provider's keys could not be fetched. */
  readonly onError?: (error: unknown) => void
}

export interface TokensOptions extends CheckOptions {
  readonly agents: Agents
  readonly codes: CodeTable
  /** Room for failed logins in all gateways together; absent when this one counts by itself. */
  readonly loginLimit?: LoginLimit | undefined
  /** Called for each wrong credential of a known agent. */
  readonly onBadCredential?: (agentId: string) => void
}

/** @param limit failures a minute */
export type LoginLimit = (of: 'agent' | 'address', limit: number) => FleetAttemptLimit

export type Tokens = Awaited<ReturnType<typeof openTokens>>

/** Opens the check of tokens. Rejects with StartupError if the settings do not work. */
export async function openTokenCheck(options: CheckOptions) {
  const { settings, clock, agents, fetchDocument, submitForm, onError } = options
  const keys = await openSigningKeys(
    { ...settings.TokenIssuance, mayMake: options.mayMakeKey ?? true },
    options.dataDirectory,
  )
  const parts = { keys, settings: settings.TokenIssuance, clock }
  const internal = createVerifier(parts)
  const external = createExternal({
    settings: settings.ExternalIdentity,
    clock,
    fetchDocument,
    submitForm,
    agent: id => agents.get(id),
    agentOfSubject: subject => agents.bySubject(subject),
    onError,
  })
  const verifyKey = createKeyVerifier({ clock, byKeyHash: hash => agents.byKeyHash(hash), onUse: options.onKeyUse })
  return {
    parts,
    external,
    /** Makes all tokens void that were issued in another epoch (SigningKeys). */
    useEpoch: keys.use,
    /** Claims of an internal token or a key: management takes no others (spec 5.3). */
    verifyInternal: verifyByKind(verifyKey, internal, undefined),
    /** Claims of an internal token, of a key, or of a token of the identity provider. `sub` is the id of the agent. */
    verify: verifyByKind(verifyKey, internal, external?.verify),
  }
}

/** Opens everything about tokens. Rejects with StartupError if the settings do not work. */
export async function openTokens(options: TokensOptions) {
  const { clock, agents, onBadCredential } = options
  const { parts, external, useEpoch, verify, verifyInternal } = await openTokenCheck(options)
  const issue = createIssuer(parts)
  const trustOf: Agents['trustOf'] = agent => agents.trustOf(agent)
  const consoleSignIn = createConsoleSignIn({ clock, codes: options.codes, keys: parts.keys, issue, trustOf })
  const grant = createGrant({
    agent: id => agents.get(id),
    trustOf,
    verifySecret: (id, secret) => agents.verifySecret(id, secret),
    verifyExternal: external?.verifyFor,
    async agentOfToken(token) {
      const claims = await external?.verify(token)
      return typeof claims === 'object' ? claims.sub : undefined
    },
    issue,
    console: consoleSignIn,
    ...createThrottles(options),
    onBadCredential,
  })
  return {
    ...{ verify, verifyInternal, useEpoch },
    /** POST /tokens. */
    grant,
    console: consoleSignIn,
    /** The keys that verify tokens: another list once all tokens were made void. */
    keys: () => parts.keys.verifying,
    /** The signing secret, to derive other keys from. */
    secret: parts.keys.secret,
    warnings: external?.warnings ?? [],
  }
}

function createThrottles({ settings, clock, loginLimit }: TokensOptions): Pick<GrantParts, 'perAgent' | 'perAddress'> {
  const { PerAgentPerMinute, PerAddressPerMinute } = settings.TokenRequests
  return {
    perAgent: createThrottle(PerAgentPerMinute, clock, loginLimit?.('agent', PerAgentPerMinute)),
    perAddress: createThrottle(PerAddressPerMinute, clock, loginLimit?.('address', PerAddressPerMinute)),
  }
}
