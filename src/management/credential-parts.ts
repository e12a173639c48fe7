import type { By } from '../agents/registry.ts'
import type { Refusal } from '../base/refusals.ts'
import type { AccountOf } from '../credentials/accounts.ts'
import type { BegunConnection, PendingConnection } from '../credentials/connection.ts'
import type { AccountView, CredentialView } from '../credentials/view.ts'
import type { Person } from '../hitl/model.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { ManagementCall } from './call.ts'

/** A person, for the audit trail, and whether it may still go on after a wait. */
export interface AskingPerson extends Pick<ManagementCall, 'problemNow'> {
  readonly person: Person
  readonly by: By
}

/** What a tab brings back from a server: its secret, and what the server has added to the address. */
export interface ConnectionReturn {
  readonly session: string
  readonly state: string
  readonly code?: string
  readonly iss?: string
  readonly error?: string
}

/** Which account a person wants to connect, and whether with a code that is entered at the server. */
export interface ConnectionWish extends AccountOf {
  readonly device?: boolean
  /** Asked for beside those of the settings. */
  readonly scope?: string
}

/** What a person is told before the tab goes to the page of consent. */
export interface ConnectionOffer extends BegunConnection, Pick<CredentialView, 'hosts' | 'scope'> {
  /** Of `scope`, what the account does not have; null when it has all, or there is none yet. */
  readonly moreScope: string | null
  readonly agentId: string | null
  readonly ownerId: string | null
}

export interface ConnectedAccount extends AccountView {
  /** Scopes that were asked for and not granted. */
  readonly missing: readonly string[]
}

/** The credentials for the API. They resolve with undefined when there is no such credential. */
export interface ManagedCredentials {
  /** @param agent only those that its requests may get, with the hosts where they get them */
  list(agent?: AgentRecord): Promise<readonly CredentialView[]>
  /** Gets a new value now. Rejects with a StoreError, and does nothing, when that cannot be recorded. */
  renew(name: string, by: By): Promise<CredentialView | Refusal | undefined>
  /** Stores what a person has granted. */
  connect(
    name: string,
    granted: AccountOf & { readonly refreshToken: string },
    asking: AskingPerson,
  ): Promise<CredentialView | ConnectedAccount | Refusal | undefined>
  /** No gateway sends its token any more when it resolves. `revoked`: nor does its server accept the token. */
  disconnect(
    name: string,
    of: AccountOf,
    asking: AskingPerson,
  ): Promise<{ readonly revoked: boolean } | Refusal | undefined>
  accounts(name: string): Promise<readonly AccountView[] | undefined>
  /** Begins the consent of a person to an account, which the same tab of the same person ends. */
  begin(name: string, of: ConnectionWish, asking: AskingPerson): Promise<ConnectionOffer | Refusal | undefined>
  finish(
    name: string,
    given: ConnectionReturn,
    asking: AskingPerson,
  ): Promise<ConnectedAccount | PendingConnection | Refusal | undefined>
  /** Who the gateway is at the server of a credential, for that server; undefined where it says so in no document. */
  clientDocument(name: string): object | undefined
  /** Call before an agent is removed; what it resolves with, after that: it revokes the agent's accounts at their servers. */
  beforeRemoval(agent: AgentRecord): Promise<() => void>
}
