import type { By } from '../agents/registry.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import { type CredentialSetting, isForAgentToken } from '../config/credentials.ts'
import { credentialEntry } from '../credentials/audit.ts'
import { clientDocument } from '../credentials/client-document.ts'
import { isFor } from '../credentials/entries.ts'
import type { CredentialKeeper } from '../credentials/keeper.ts'
import type { StoredGrant } from '../credentials/stored-grant.ts'
import { broughtBy } from '../credentials/stored-row.ts'
import { type CredentialView, viewOf } from '../credentials/view.ts'
import type { AskingPerson, ManagedCredentials } from '../management/credential-parts.ts'
import type { AgentRecord, AuditEntry } from '../storage/store.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { KeptCredentials } from './credentials.ts'
import type { Identity } from './identity.ts'
import { endGrant, explained, ManagedAccounts } from './managed-accounts.ts'
import type { Upstreams } from './upstreams.ts'

interface ManagedCredentialParts extends Pick<Base, 'config' | 'clock' | 'store' | 'report'> {
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
  readonly identity: Pick<Identity, 'registry'>
}

/** The credentials for the API. */
export function manageCredentials(parts: ManagedCredentialParts): ManagedCredentials {
  const kept = parts.upstreams.keptCredentials
  if (kept === undefined) throw new Error('cannot happen: the first thread keeps no credentials')
  const accounts = new ManagedAccounts({ ...parts, registry: parts.identity.registry, kept })
  const shared = new SharedCredentials(parts, kept)
  const settingOf = (name: string) => parts.config.Credentials.find(({ Name }) => Name === name)
  return {
    list: async agent => (agent === undefined ? shared.list() : Promise.all(shared.listOf(agent, accounts))),
    async renew(name, by) {
      const setting = settingOf(name)
      // There may be thousands, and each renewal would use up a refresh token.
      if (setting?.Type === 'Connect') return refuse('wrong_state', 'Accounts are renewed when requests need them.')
      if (setting !== undefined && isForAgentToken(setting)) return refuse('wrong_state', ofAgents)
      return setting && shared.renew(setting, by)
    },
    async connect(name, granted, asking) {
      const setting = settingOf(name)
      if (setting?.Type === 'Connect') return accounts.put(setting, granted, asking)
      return setting && shared.connect(setting, granted.refreshToken, asking.by)
    },
    async disconnect(name, of, asking) {
      const setting = settingOf(name)
      if (setting?.Type === 'Connect') return accounts.forget(setting, of, asking)
      return setting && shared.disconnect(setting, asking)
    },
    accounts: name => accounts.list(name),
    begin: (...asked) => accounts.begin(...asked),
    finish: (...asked) => accounts.finish(...asked),
    clientDocument(name) {
      const setting = settingOf(name)
      return setting && clientDocument(setting, consoleUrlOf(parts.config))
    },
    beforeRemoval: agent => accounts.beforeRemoval(agent),
  }
}

/** How all are, and what people do with those that all requests share. */
class SharedCredentials {
  readonly #parts: ManagedCredentialParts
  readonly #kept: KeptCredentials

  constructor(parts: ManagedCredentialParts, kept: KeptCredentials) {
    this.#parts = parts
    this.#kept = kept
  }

  list(): readonly CredentialView[] {
    return this.#parts.config.Credentials.map(setting => this.#show(setting))
  }

  /** Those that requests of an agent may get. */
  listOf(agent: AgentRecord, accounts: ManagedAccounts): Promise<CredentialView>[] {
    const { config } = this.#parts
    const given = config.Upstreams.filter(setting => isFor(setting, agent))
    const found = config.Credentials.filter(({ Name }) => given.some(({ Credential }) => Credential === Name))
    return found.map(async setting => {
      if (setting.Type !== 'Connect') return this.#show(setting, this.#keepersOf(setting), given)
      const keeper = this.#kept.keepers.find(accounts.keyOf(setting, agent))?.keeper
      const account = await accounts.of(setting, agent)
      return { ...this.#show(setting, keeper === undefined ? [] : [keeper], given), account }
    })
  }

  async renew(setting: CredentialSetting, by: By): Promise<CredentialView> {
    await this.#parts.store.audit.append(this.#entry('renew', setting, by))
    await Promise.all(this.#keepersOf(setting).map(keeper => keeper.restart()))
    return this.#show(setting)
  }

  async connect(setting: CredentialSetting, refreshToken: string, by: By): Promise<CredentialView | Refusal> {
    const grant = this.#grantOf(setting)
    if (grant === undefined) return refuse('wrong_state', noToken)
    const account = broughtBy(by.actor, this.#parts.clock.now(), setting)
    const stored = await explained(grant.connect({ refreshToken, account }, this.#entry('connected', setting, by)))
    return stored ?? this.#show(setting)
  }

  async disconnect(setting: CredentialSetting, { person, by }: Pick<AskingPerson, 'person' | 'by'>) {
    if (!person.roles.includes('admin')) return refuse('forbidden', 'This operation needs the role admin.')
    const grant = this.#grantOf(setting)
    return grant === undefined
      ? refuse('wrong_state', noToken)
      : endGrant(grant, this.#entry('disconnected', setting, by))
  }

  #grantOf({ Name = '' }: CredentialSetting): StoredGrant | undefined {
    return this.#kept.keepers.find(Name)?.grant
  }

  #keepersOf({ Name }: CredentialSetting): readonly CredentialKeeper[] {
    return this.#kept.keepers.all.flatMap(({ key, keeper }) => (key.name === Name ? [keeper] : []))
  }

  #show(setting: CredentialSetting, of = this.#keepersOf(setting), upstreams = this.#parts.config.Upstreams) {
    return viewOf(setting, of, { upstreams, clock: this.#parts.clock })
  }

  #entry(what: 'connected' | 'disconnected' | 'renew', { Name: name = '' }: CredentialSetting, by: By): AuditEntry {
    return credentialEntry({ name, subject: '' }, { what, at: this.#parts.clock.now(), by })
  }
}

const noToken = 'Only credentials of the types RefreshToken and Connect keep a token.'
const ofAgents = 'Each agent has its own, for the token with which it calls: there is none to renew here.'
