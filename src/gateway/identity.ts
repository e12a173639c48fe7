import { agentProblem } from '../agents/agent.ts'
import { bootstrapAdmin } from '../agents/bootstrap.ts'
import { createAgentKeys } from '../agents/keys.ts'
import { openRegistry, type RegistryOptions } from '../agents/registry.ts'
import { createSecretHasher } from '../agents/secret.ts'
import type { Config } from '../config/schema.ts'
import type { SubmitForm } from '../tokens/introspection.ts'
import type { FetchDocument } from '../tokens/keyset.ts'
import { type LoginLimit, openTokens, type Tokens } from '../tokens/open.ts'
import type { Base } from './base.ts'
import { usesPostgres } from './storage.ts'

export interface IdentityParts extends Pick<Base, 'config' | 'dataDirectory' | 'clock' | 'log' | 'store'> {
  readonly fetchDocument: FetchDocument
  readonly submitForm: SubmitForm
  readonly loginLimit: LoginLimit | undefined
  /** Called when the gateway has quarantined an agent. */
  readonly onQuarantine: NonNullable<RegistryOptions['onQuarantine']>
  /** Called when all earlier tokens become void. The change is answered once this resolves. */
  readonly onTokens: (epoch: string | undefined) => Promise<void>
}

/** Who may call: agents, their secrets and their tokens. */
export type Identity = Awaited<ReturnType<typeof openIdentity>>

/** Secrets that may wait to be hashed, in all. */
const maxSecretsWaiting = 32
/** Span in which denials and losses count for a quarantine, milliseconds: the same in each gateway on a database. */
const quarantineWindowMs = 300_000

/** Opens the registry, makes the first admin if there is none, and gets the signing keys ready. */
export async function openIdentity(parts: IdentityParts) {
  const { config, dataDirectory, store, clock, log, fetchDocument, submitForm, loginLimit } = parts
  const { TokenRequests } = config.Security.AgentAuth
  const secrets = createSecretHasher({
    cost: TokenRequests.BcryptCost,
    queueLength: maxSecretsWaiting,
    onCrash: error => log.error({ error }, 'the thread that checks secrets died; the next login starts a new one'),
  })
  try {
    const registry = await openRegistry({
      store,
      clock,
      secrets,
      defaultPolicy: config.Policy.AssignOnRegistration,
      quarantine: quarantineRules(config),
      onQuarantine(agentId, cause) {
        log.warn({ agentId, reason: cause }, 'agent quarantined')
        parts.onQuarantine(agentId, cause)
      },
      onError: error => log.error({ error }, 'a change of trust could not be stored'),
    })
    const onError = (error: unknown) => log.error({ error }, 'uses of keys could not be stored')
    const keys = createAgentKeys({ store, clock, registry, onError })
    const tokens = await openTokens({
      settings: config.Security.AgentAuth,
      dataDirectory,
      // Before the first admin is made: a database with agents and without its key has lost it.
      mayMakeKey: registry.values().length === 0,
      clock,
      agents: registry,
      codes: store.codes,
      loginLimit,
      fetchDocument,
      submitForm,
      onKeyUse: keys.noteUse,
      onBadCredential: id => registry.recordTrust(id, 'badCredential', null),
      onError: error => log.warn({ error }, 'the keys of the identity provider could not be fetched'),
    })
    const tokenEpoch = await followTokens(parts, tokens)
    const { AgentId: agentId, ClientSecret: clientSecret } = config.Security.Bootstrap
    const mayMakeCredential = !usesPostgres(config)
    await bootstrapAdmin({ registry, store, dataDirectory, mayMakeCredential, agentId, clientSecret })
    return {
      registry,
      keys,
      tokens,
      tokenEpoch,
      /** Why an agent may not call now; undefined when it may. */
      problemOf: (id: string) => agentProblem(registry.get(id)),
      async close() {
        await registry.flush()
        await keys.close()
        await secrets.close()
      },
    }
  } catch (error) {
    await secrets.close()
    throw error
  }
}

/**
 * Makes tokens void, in all threads, when the epoch in the store changes. Returns a function that reads the current epoch.
 */
async function followTokens({ store, onTokens }: IdentityParts, { useEpoch }: Tokens) {
  let epoch: string | undefined
  async function change(now: string | undefined): Promise<void> {
    epoch = now
    await Promise.all([useEpoch(now), onTokens(now)])
  }
  await store.feed.tokens.follow({ load: ([now]) => change(now), change: (_, now) => change(now) })
  return () => epoch
}

function quarantineRules({ Trust }: Config) {
  return {
    windowMs: quarantineWindowMs,
    // Read at each judgement: the settings may change.
    get below() {
      return Trust.QuarantineBelow
    },
    get denials() {
      return Trust.QuarantineDenials
    },
  }
}
