import type { By, Registry } from '../agents/registry.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import { type AccountOf, keyFor, keyOfAccount, mayConnect } from '../credentials/accounts.ts'
import { credentialEntry } from '../credentials/audit.ts'
import { redirectUriOf } from '../credentials/client-document.ts'
import type { ConnectionTerms, PendingConnection } from '../credentials/connection.ts'
import type { Consented } from '../credentials/consent.ts'
import { foreignScope, grantableScopes, withScopes } from '../credentials/scopes.ts'
import { CredentialError } from '../credentials/state.ts'
import type { StoredGrant } from '../credentials/stored-grant.ts'
import {
  type Granted,
  openOrEmpty,
  type Revocable,
  revocable,
  revocableOf,
  serverOf,
} from '../credentials/stored-row.ts'
import { type AccountView, accountView, viewOf } from '../credentials/view.ts'
import type { Person } from '../hitl/model.ts'
import type {
  AskingPerson,
  ConnectedAccount,
  ConnectionOffer,
  ConnectionReturn,
  ConnectionWish,
} from '../management/credential-parts.ts'
import {
  agentSubject,
  type CredentialKey,
  clientSubject,
  keyText,
  type StoredCredential,
  subjectFacts,
} from '../storage/credentials.ts'
import type { AgentRecord, AuditEntry } from '../storage/store.ts'
import { OwnRequestError } from '../upstream/own-requests.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { KeptCredentials } from './credentials.ts'

export interface AccountParts extends Pick<Base, 'config' | 'clock' | 'store' | 'report'> {
  readonly registry: Pick<Registry, 'get'>
  readonly kept: KeptCredentials
}

interface KeptGrant extends Consented, ConnectionTerms {}

/** Accounts that a page of accounts shows at most. */
const maxShown = 1_000

export class ManagedAccounts {
  readonly #parts: AccountParts

  constructor(parts: AccountParts) {
    this.#parts = parts
  }

  keyOf(setting: CredentialSetting, agent: AgentRecord): string {
    return keyText(keyFor(setting, agent))
  }

  async of(setting: CredentialSetting, agent: AgentRecord): Promise<AccountView | null> {
    const row = await this.#parts.store.credentials.of(keyFor(setting, agent))
    return row === undefined ? null : this.#view(row)
  }

  async list(name: string): Promise<readonly AccountView[] | undefined> {
    if (this.#settingOf(name)?.Type !== 'Connect') return undefined
    const rows = await this.#parts.store.credentials.list({ name }, maxShown)
    return rows.filter(({ subject }) => subject !== clientSubject).map(row => this.#view(row))
  }

  async begin(
    name: string,
    { device = false, scope = '', ...of }: ConnectionWish,
    { person, by }: AskingPerson,
  ): Promise<ConnectionOffer | Refusal | undefined> {
    const { config, clock } = this.#parts
    const setting = this.#settingOf(name)
    if (setting === undefined) return undefined
    if (setting.Type !== 'Connect') return refuse('wrong_state', 'Only a credential of type Connect has accounts.')
    const key = this.#find(setting, of, person)
    if (isRefusal(key)) return key
    const origin = consoleUrlOf(config)
    // A client that is registered has an address to come back to, even for a code.
    if (origin === undefined && (!device || setting.ClientId === undefined)) return refuse('wrong_state', noOrigin)
    const added = scope.split(' ').filter(one => one !== '')
    const foreign = foreignScope(setting, added)
    if (foreign !== undefined) return refuse('wrong_state', `${notNamed(setting)} ${JSON.stringify(foreign)}.`)
    const { beginConnection } = await import('../credentials/connection.ts')
    const connections = await this.#connections()
    const redirectUri = device ? undefined : redirectUriOf(name, origin ?? '')
    const scopes = await this.#scopesFor(setting, key, added)
    const asked = { key, personId: person.id, redirectUri }
    const noteOf = (facts: AuditEntry['details']) =>
      credentialEntry(key, { what: 'registered', at: clock.now(), by, facts })
    const begun = await explained(
      connections.clients
        .forConsent(setting, noteOf)
        .then(by => beginConnection(setting, { ...asked, terms: { ...by, more: scopes.more } }, connections)),
    )
    if (isRefusal(begun)) return begun
    const { agentId = null, ownerId = null } = subjectFacts(key.subject)
    const { hosts } = viewOf(setting, [], { upstreams: config.Upstreams, clock })
    return { ...begun, agentId, ownerId, hosts, scope: scopes.asked, moreScope: scopes.lacking }
  }

  /** What an account has been asked for stays, and a person may add to it. */
  async #scopesFor(setting: CredentialSetting, key: CredentialKey, added: readonly string[]) {
    const row = openOrEmpty(this.#grants().sealingKeys, await this.#parts.store.credentials.of(key))
    const { account } = row.held
    const more = [...new Set([...(account?.more ?? []), ...added])]
    const { Scope: asked = null } = withScopes(setting, more)
    const lacking = grantableScopes(setting, account).filter(one => asked?.split(' ').includes(one))
    return { more, asked, lacking: (row.state === 'ready' && lacking.join(' ')) || null }
  }

  async finish(
    name: string,
    { session, ...answer }: ConnectionReturn,
    { person, by, problemNow }: AskingPerson,
  ): Promise<ConnectedAccount | PendingConnection | Refusal | undefined> {
    const setting = this.#settingOf(name)
    if (setting?.Type !== 'Connect') return undefined
    const { takeConnection } = await import('../credentials/connection.ts')
    const given = { name, personId: person.id, session, answer: new URLSearchParams(answer) }
    const taken = await takeConnection(given, await this.#connections())
    if (taken === undefined) return refuse('wrong_state', notBegun)
    const { key, terms } = taken
    const withdraw = (granted: Granted) => void this.#withdraw(setting, key, revocableOf(granted, terms))
    const consented = await explained(taken.finish(setting, withdraw))
    if (isRefusal(consented)) return consented
    // Rights may have been lost since the consent was begun, and while its server was asked.
    const isAllowed = mayConnect(this.#agentOf(person.id) ?? person, key.subject, this.#agentOf)
    const problem = problemNow() ?? (isAllowed ? undefined : refuse('forbidden', notYours))
    if ('everySeconds' in consented) return problem ?? consented
    try {
      const kept = problem ?? (await this.#keep(key, { ...consented, ...terms }, by))
      if (isRefusal(kept)) withdraw(consented)
      return kept
    } catch (error) {
      withdraw(consented)
      throw error
    }
  }

  /** Stores a refresh token that was granted elsewhere. */
  async put(
    setting: CredentialSetting,
    { refreshToken, ...account }: AccountOf & { readonly refreshToken: string },
    { person, by }: Pick<AskingPerson, 'person' | 'by'>,
  ): Promise<ConnectedAccount | Refusal> {
    const key = this.#find(setting, account, person)
    if (isRefusal(key)) return key
    if (setting.ClientId === undefined) return refuse('wrong_state', `${setting.Name} ${inConsole}`)
    const of = { clientId: setting.ClientId, server: serverOf(setting) }
    return this.#keep(key, { refreshToken, scope: null, missing: [], login: null, more: [], ...of }, by)
  }

  async forget(
    setting: CredentialSetting,
    of: AccountOf,
    { person, by }: Pick<AskingPerson, 'person' | 'by'>,
  ): Promise<{ readonly revoked: boolean } | Refusal> {
    const key = this.#find(setting, of, person)
    if (isRefusal(key)) return key
    const at = this.#parts.clock.now()
    return endGrant(this.#grantOf(key), credentialEntry(key, { what: 'disconnected', at, by }))
  }

  /** What is revoked at the servers once an agent is removed, which removes its accounts here. */
  async beforeRemoval(agent: AgentRecord): Promise<() => void> {
    const { store, report } = this.#parts
    const rows = await store.credentials.list({ subject: agentSubject(agent) }, maxShown)
    const revokes = rows.flatMap(row => {
      const token = revocable(openOrEmpty(this.#grants().sealingKeys, row))
      if (token === undefined || this.#settingOf(row.name)?.Type !== 'Connect') return []
      const grant = this.#grantOf(row)
      return [() => grant.revoke(token)]
    })
    return () => void Promise.all(revokes.map(revoke => revoke())).catch(error => report(unrevoked, error))
  }

  /** What is not kept here is revoked at its server, unless another grant of the same account might end with it. */
  async #withdraw(setting: CredentialSetting, key: CredentialKey, token: Revocable | undefined): Promise<void> {
    const { store, report } = this.#parts
    try {
      const row = await store.credentials.of(key)
      if (token === undefined || (row !== undefined && row.state !== 'needed')) return
      await (await this.#grants().clients()).revoke(setting, token)
    } catch (error) {
      report(notWithdrawn, error)
    }
  }

  readonly #agentOf = (id: string): AgentRecord | undefined => this.#parts.registry.get(id)

  #settingOf(name: string): CredentialSetting | undefined {
    return this.#parts.config.Credentials.find(({ Name }) => Name === name)
  }

  #grants() {
    const grants = this.#parts.kept.grants()
    if (grants === undefined) throw new Error('cannot happen: the store is not followed')
    return grants
  }

  async #connections() {
    const { store, clock } = this.#parts
    const { sealingKeys, clients } = this.#grants()
    return { table: store.credentials, sealingKeys, clients: await clients(), clock }
  }

  #view(row: StoredCredential): AccountView {
    const keeper = this.#parts.kept.keepers.find(keyText(row))?.keeper
    return accountView(row.subject, openOrEmpty(this.#grants().sealingKeys, row), keeper)
  }

  /** The account that a person means, if this person may connect it. */
  #find(setting: CredentialSetting, of: AccountOf, person: Person): CredentialKey | Refusal {
    const key = keyOfAccount(setting, of, this.#agentOf)
    if (key === undefined) return refuse('wrong_state', notOne(setting))
    return mayConnect(person, key.subject, this.#agentOf) ? key : refuse('forbidden', notYours)
  }

  #grantOf(key: CredentialKey): StoredGrant {
    const { grant } = this.#parts.kept.keepers.of(keyText(key))
    if (grant === undefined) throw new Error('cannot happen: an account without a store')
    return grant
  }

  /** In force in all gateways when it resolves. */
  async #keep(key: CredentialKey, consented: KeptGrant, by: By): Promise<ConnectedAccount | Refusal> {
    const { refreshToken, access, scope, missing, login, clientId, server, more } = consented
    const account = { by: by.actor, at: this.#parts.clock.now(), scope, login, clientId, server, more }
    const facts = { ...(scope !== null && { scope }), ...(missing.length > 0 && { missing }) }
    const entry = credentialEntry(key, { what: 'connected', at: account.at, by, facts })
    const problem = await explained(this.#grantOf(key).connect({ refreshToken, access, account }, entry))
    if (isRefusal(problem)) return problem
    const row = await this.#parts.store.credentials.of(key)
    return row === undefined ? refuse('wrong_state', goneMeanwhile) : { ...this.#view(row), missing }
  }
}

/** Disconnects, and then revokes what was granted. */
export async function endGrant(
  grant: StoredGrant,
  entry: AuditEntry,
): Promise<{ readonly revoked: boolean } | Refusal> {
  const ended = await explained(grant.disconnect(entry).then(token => ({ token })))
  if (isRefusal(ended)) return ended
  return { revoked: ended.token !== undefined && (await grant.revoke(ended.token)) }
}

/** What a server, a person there, or what happened meanwhile has refused. */
export const explained = <T>(asked: Promise<T>): Promise<T | Refusal> =>
  asked.catch(error => {
    const isTheirs = error instanceof CredentialError || error instanceof OwnRequestError
    if (isTheirs) return refuse('wrong_state', error.message)
    throw error
  })

const unrevoked = 'tokens of an agent that was removed could not be revoked'
const notWithdrawn = 'a grant that was not taken could not be revoked at its server'
const notYours = 'An admin connects accounts of all; others those of agents with their own ownerId.'
const notBegun = 'This consent was not begun by you in this tab, or has ended. Connect the account again.'
const noOrigin =
  'System:PublicUrl must be set (with System:Server:Management, its PublicUrl): servers come back to it. Or use a code (device).'
const notNamed = ({ Name }: CredentialSetting): string =>
  `Neither Scope nor StepUpScope of ${Name} names this scope, so people must not be asked for it:`
const inConsole = 'has no ClientId, so the gateway is the client: connect the account in the console.'
const goneMeanwhile = 'The agent was removed meanwhile.'

const notOne = ({ Per, Name }: CredentialSetting): string =>
  ({
    Agent: `${Name} has accounts of agents: name one that is there with agentId.`,
    Owner: `${Name} has accounts of owners: name one with ownerId, or one of its agents with agentId.`,
    All: `${Name} has one account for all agents: name none.`,
  })[Per]
