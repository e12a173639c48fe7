import { StartupError } from '../base/refusals.ts'
import { type CredentialSetting, isForAgentToken } from '../config/credentials.ts'
import type { Config } from '../config/schema.ts'
import { AgentKeepers } from '../credentials/agent-keepers.ts'
import { GivenBack } from '../credentials/given-back.ts'
import type { CredentialKeeper, KeeperParts } from '../credentials/keeper.ts'
import type { LeaseParts, SecretLeases } from '../credentials/leases.ts'
import { type SourceParts, secretOf } from '../credentials/obtain.ts'
import { createSecrets, type SecretPlaces, type Secrets } from '../credentials/secrets.ts'
import type { CredentialState } from '../credentials/state.ts'
import { createCredentialTable, type NeedCredential, type NoteWanted } from '../credentials/table.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'
import { connectUrlOf } from './base.ts'
import { CredentialKeepers } from './credential-keepers.ts'
import {
  type AttemptParts,
  type CredentialStore,
  createAttemptNotes,
  createGrants,
  followChanges,
  type GrantMaker,
  keptOf,
} from './kept-credential.ts'

/** The credentials of `Credentials`, kept by the first thread for all of them. */
export type KeptCredentials = Awaited<ReturnType<typeof openKeptCredentials>>

export interface KeptCredentialParts extends SecretPlaces, AttemptParts {
  readonly ownRequests: Pick<OwnRequests, 'ask'>
}

/** Agents can have exchanges fail and succeed in turns: one failure in this time is put on record, milliseconds. */
const failedAgainMs = 600_000

/** Types whose value is the secret itself, in some form. */
const isStatic = ({ Type }: CredentialSetting): boolean => Type === 'Value' || Type === 'Basic'

/** A token that nobody has asked for yet is not fetched because its secret has changed. */
const isInUse = ({ setting, state }: CredentialKeeper): boolean =>
  isStatic(setting) || (!isForAgentToken(setting) && (state.version > 0 || state.problem !== undefined))

/**
 * Reads the secrets, but asks no server and runs no program: the first request that needs a token does.
 *
 * @throws StartupError when a secret cannot be read
 */
export async function openKeptCredentials(config: Config, parts: KeptCredentialParts) {
  const { clock } = parts
  const stopping = new AbortController()
  const givenBack = new GivenBack(clock)
  const asking = { need: (...asked: Parameters<NeedCredential>) => need(...asked), signal: stopping.signal, givenBack }
  const secrets = openSecrets(config, { ...parts, ...asking })
  const sourceParts = { clock, secrets, ownRequests: parts.ownRequests, servers: new Map(), givenBack }
  const listeners: ((state: CredentialState) => unknown)[] = []
  const onState = (state: CredentialState) => {
    table.set(state)
    return Promise.all(listeners.map(listener => listener(state)))
  }
  const notes = createAttemptNotes(parts)
  const opened = openKeepers(config, { clock, sourceParts, onState, notes })
  const { keepers, agentKeepers, need, noteWanted } = opened
  const noteUse = (key: string) => keepers.of(key).keeper.noteUse()
  const states = () => keepers.all.map(({ keeper }) => keeper.state)
  const table = createCredentialTable({
    ...{ known: states(), need, onUse: noteUse, onWanted: noteWanted, clock, keepers: agentKeepers },
    connectUrl: connectUrlOf(config),
  })
  // A stored token is good whatever its client secret is, and there may be thousands.
  const shared = keepers.shared.map(({ keeper }) => keeper)

  const readable = await readSecrets(config, secrets)
  await restartAll(shared.filter(({ setting }) => isStatic(setting) && readable.has(secretOf(setting))))

  return {
    ...{ table, keepers, sourceParts, states, need, noteUse, noteWanted },
    /** Undefined until the store is followed. */
    grants: opened.grants,
    /** Called at each change from here on; a change that people wait for is in force once it resolves. */
    follow: (listener: (state: CredentialState) => unknown) => listeners.push(listener),
    /** From here on what the store has is in force, and its changes. */
    async followStore(stored: CredentialStore) {
      notes.useStore(stored)
      await opened.followStore(stored)
    },
    /** Reads all secrets again. Rejects when one cannot be used; its credential keeps its value. */
    async reload() {
      await readSecrets(config, secrets)
      await restartAll(shared.filter(isInUse))
    },
    /** Reads the secrets again whose files have changed. Call about every second. */
    async sweep() {
      const changed = await secrets.changed()
      const stale = shared.filter(keeper => isInUse(keeper) && changed.some(name => keeper.reads(name)))
      await restartAll(stale).catch(() => {})
      givenBack.sweep()
      await Promise.all(keepers.all.map(({ grant }) => grant?.sweep()))
    },
    /** Gives back at their servers what was had for the gateway alone. */
    async close() {
      stopping.abort()
      for (const { keeper } of keepers.all) keeper.close()
      await givenBack.close()
    },
  }
}

interface KeepersParts extends Pick<KeptCredentialParts, 'clock'>, Pick<KeeperParts, 'onState'> {
  readonly sourceParts: SourceParts
  readonly notes: ReturnType<typeof createAttemptNotes>
}

function openKeepers(config: Config, { clock, sourceParts, onState, notes }: KeepersParts) {
  let grants: GrantMaker | undefined
  const keepers = new CredentialKeepers(config.Credentials, (setting, key) => {
    const kept = keptOf(setting, key, { clock, sourceParts, onState, ...notes })
    grants?.add(kept)
    return kept
  })
  const failedAt = new Map<string, number>()
  const agentKeepers = new AgentKeepers({
    ...{ clock, sourceParts },
    // The credential itself shows how the last attempt for any agent went. A token that its server refuses says nothing of others.
    onAttempt(name, problem, agentId) {
      if (problem?.kind === 'needed') return notes.onRefused(name, problem, agentId)
      const { keeper } = keepers.of(name)
      const now = clock.steady()
      const isKnown = problem !== undefined && now - (failedAt.get(name) ?? Number.NEGATIVE_INFINITY) < failedAgainMs
      if (problem !== undefined && !isKnown) failedAt.set(name, now)
      notes.onAttempt(name, problem, isKnown ? { kind: problem.kind, text: '' } : keeper.state.problem, false)
      void keeper.adopt(undefined, problem)
      if (problem === undefined) keeper.renewedAt = clock.now()
    },
  })
  const noteWanted: NoteWanted = (text, scopes, host) => {
    const { key, keeper } = keepers.of(text)
    const wanted = keeper.noteWanted(scopes)
    if (wanted.length > 0) notes.onWanted(key, keeper, { scopes: wanted, host })
  }
  const need: NeedCredential = async (name, refused, subject) => {
    const { keeper } = keepers.of(name)
    return subject === undefined ? keeper.renewed(refused) : agentKeepers.renewed(keeper.setting, subject, refused)
  }
  return {
    ...{ keepers, agentKeepers, need, noteWanted, grants: () => grants },
    async followStore(stored: CredentialStore) {
      grants = createGrants(stored, { ...sourceParts, clock })
      for (const kept of keepers.all) grants.add(kept)
      await followChanges(keepers, stored, ({ keeper }) => {
        keeper.close()
        keepers.forget(keeper.name)
        return onState({ ...keeper.state, isGone: true })
      })
    },
  }
}

/** What speaks with stores is loaded when the first one is needed. */
function openSecrets(config: Config, parts: KeptCredentialParts & Omit<LeaseParts, 'credentials'>): Secrets {
  let opened: SecretLeases | undefined
  const secrets = createSecrets(config.Secrets, {
    ...parts,
    async readUrl(setting) {
      const { SecretLeases } = await import('../credentials/leases.ts')
      opened ??= new SecretLeases({ ...parts, credentials: config.Credentials })
      return opened.read(setting)
    },
  })
  return {
    read: name => secrets.read(name),
    async changed() {
      opened?.sweep()
      return [...(await secrets.changed()), ...(opened?.changed() ?? [])]
    },
  }
}

/** Those that neither a program nor a store has. Resolves with their names. */
async function readSecrets({ Secrets }: Config, secrets: Secrets): Promise<ReadonlySet<string | undefined>> {
  const known = Secrets.filter(({ FromCommand, FromUrl }) => FromCommand.length === 0 && FromUrl === undefined)
  await Promise.all(known.map(({ Name = '' }) => secrets.read(Name)))
  await secrets.changed()
  return new Set(known.map(({ Name }) => Name))
}

/** @throws StartupError */
async function restartAll(keepers: readonly CredentialKeeper[]): Promise<void> {
  await Promise.all(keepers.map(keeper => keeper.restart()))
  const problems = keepers.flatMap(({ state: { name, problem } }) =>
    problem ? [`Credential ${name}: ${problem.text}`] : [],
  )
  if (problems.length > 0) throw new StartupError(problems.join(' '))
}
