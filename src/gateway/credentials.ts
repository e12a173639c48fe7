import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { CredentialKeeper } from '../credentials/keeper.ts'
import { secretOf } from '../credentials/obtain.ts'
import type { SecretUrlParts } from '../credentials/secret-url.ts'
import { createSecrets, type SecretPlaces, type Secrets } from '../credentials/secrets.ts'
import type { CredentialState } from '../credentials/state.ts'
import { type CredentialTable, createCredentialTable, type NeedCredential } from '../credentials/table.ts'
import type { Log } from '../log/log.ts'
import type { Clock } from '../runtime/clock.ts'
import { credentialRenewals } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'

/** The credentials of `Credentials`, kept by the first thread for all of them. */
export interface KeptCredentials {
  readonly table: CredentialTable
  readonly keepers: readonly CredentialKeeper[]
  states(): readonly CredentialState[]
  readonly need: NeedCredential
  /** Called at each change from here on. */
  follow(listener: (state: CredentialState) => void): void
  /** Reads all secrets again. Rejects when one cannot be used; its credential keeps its value. */
  reload(): Promise<void>
  /** Reads the secrets again whose files have changed. Call about every second. */
  sweep(): Promise<void>
  close(): void
}

export interface KeptCredentialParts extends SecretPlaces {
  readonly clock: Clock
  readonly ownRequests: Pick<OwnRequests, 'ask'>
  /** Absent: nothing is logged or counted. */
  readonly log?: Log | undefined
  readonly metrics?: Metrics | undefined
}

/** Types whose value is the secret itself, in some form. */
const isStatic = ({ Type }: Config['Credentials'][number]): boolean => Type === 'Value' || Type === 'Basic'

/** A token that nobody has asked for yet is not fetched because its secret has changed. */
const isInUse = ({ setting, state }: CredentialKeeper): boolean =>
  isStatic(setting) || state.version > 0 || state.problem !== undefined

/**
 * Reads the secrets, but asks no server and runs no program: the first request that needs a token does.
 *
 * @throws StartupError when a secret cannot be read
 */
export async function openKeptCredentials(config: Config, parts: KeptCredentialParts): Promise<KeptCredentials> {
  const { clock, log, metrics } = parts
  const stopping = new AbortController()
  const secrets = openSecrets(config, { ...parts, need: (...asked) => need(...asked), signal: stopping.signal })
  const listeners: ((state: CredentialState) => void)[] = []
  const keepers = config.Credentials.map(
    setting =>
      new CredentialKeeper(setting, {
        ...{ ...parts, secrets },
        onState: state => {
          table.set(state)
          for (const listener of listeners) listener(state)
        },
        onAttempt(name, problem) {
          metrics?.count(credentialRenewals, problem?.kind ?? 'renewed')
          if (problem === undefined) log?.debug({ credential: name }, 'a credential has a new value')
          else log?.error({ credential: name, reason: problem.message }, 'a credential has no new value')
        },
      }),
  )
  const need: NeedCredential = async (name, refused) => {
    const keeper = keepers.find(one => one.name === name)
    if (keeper === undefined) throw new Error(`cannot happen: the credential ${name} is not configured`)
    return keeper.renewed(refused)
  }
  const states = () => keepers.map(({ state }) => state)
  const table = createCredentialTable(states(), need, clock)

  const readSecrets = async () => {
    const known = config.Secrets.filter(({ FromCommand, FromUrl }) => FromCommand.length === 0 && FromUrl === undefined)
    await Promise.all(known.map(({ Name = '' }) => secrets.read(Name)))
    await secrets.changed()
    return new Set(known.map(({ Name }) => Name))
  }
  const readable = await readSecrets()
  const atOnce = keepers.filter(({ setting }) => isStatic(setting) && readable.has(secretOf(setting)))
  await restartAll(atOnce)

  return {
    ...{ table, keepers, states, need },
    follow: listener => listeners.push(listener),
    async reload() {
      await readSecrets()
      await restartAll(keepers.filter(isInUse))
    },
    async sweep() {
      const changed = await secrets.changed()
      await restartAll(keepers.filter(keeper => isInUse(keeper) && changed.some(name => keeper.reads(name)))).catch(
        () => {},
      )
    },
    close() {
      stopping.abort()
      for (const keeper of keepers) keeper.close()
    },
  }
}

/** What speaks with stores is loaded when the first one is needed. */
const openSecrets = (config: Config, parts: KeptCredentialParts & Pick<SecretUrlParts, 'need' | 'signal'>): Secrets =>
  createSecrets(config.Secrets, {
    ...parts,
    async readUrl(setting) {
      const { readSecretUrl } = await import('../credentials/secret-url.ts')
      return readSecretUrl(setting, { ...parts, credentials: config.Credentials })
    },
  })

/** @throws StartupError */
async function restartAll(keepers: readonly CredentialKeeper[]): Promise<void> {
  await Promise.all(keepers.map(keeper => keeper.restart()))
  const problems = keepers.flatMap(({ state: { name, problem } }) =>
    problem ? [`Credential ${name}: ${problem.text}`] : [],
  )
  if (problems.length > 0) throw new StartupError(problems.join(' '))
}
