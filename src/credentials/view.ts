import { type CredentialSetting, isForAgentToken } from '../config/credentials.ts'
import type { UpstreamSetting } from '../config/upstreams.ts'
import type { Clock } from '../runtime/clock.ts'
import { subjectFacts } from '../storage/credentials.ts'
import type { CredentialKeeper } from './keeper.ts'
import { maxWantedScopes } from './scopes.ts'
import { isFresh } from './state.ts'
import type { OpenedRow } from './stored-row.ts'

export const credentialStates = ['unused', 'ready', 'renewing', 'failing', 'needed'] as const

/** A credential as the API shows it: never its value. */
export interface CredentialView {
  readonly name: string
  readonly type: CredentialSetting['Type']
  /** Whose accounts it has; null when all requests share one value. */
  readonly per: CredentialSetting['Per'] | null
  /** What people are asked to grant; null when the settings do not say. */
  readonly scope: string | null
  /** Hosts that get it, as `Upstreams` writes them. */
  readonly hosts: readonly string[]
  /**
   * `unused`: no request has needed it yet. `failing`: there is a problem, and another attempt may succeed. Of accounts it is that
   * of the one with the gravest problem, of those that requests have needed.
   */
  readonly state: (typeof credentialStates)[number]
  /** Whether requests get it now, although the last attempt to renew it may have failed. */
  readonly usable: boolean
  /** Until when it is sent; null when it does not end, or there is none. */
  readonly expiresAt: string | null
  readonly renewedAt: string | null
  /** When this gateway sent it last, to a second; null since its start. */
  readonly lastUsedAt: string | null
  readonly problem: string | null
  /** What upstreams have wanted and it does not have; null: nothing. */
  readonly wantedScope: string | null
  /** Of the agent that was asked for: null when nobody has connected one. Absent: no agent was asked for, or it has no accounts. */
  readonly account?: AccountView | null
}

/** An account of a person as the API shows it: never its tokens. */
export interface AccountView {
  /** Whose it is; both null: of all agents. */
  readonly agentId: string | null
  readonly ownerId: string | null
  /** `needed`: it must be connected again. */
  readonly state: 'ready' | 'failing' | 'needed'
  /** Who it is at its server, as that says. */
  readonly login: string | null
  readonly scope: string | null
  readonly connectedBy: string | null
  readonly connectedAt: string | null
  /** Until when its access token is sent; null when it does not end, or there is none. */
  readonly expiresAt: string | null
  readonly problem: string | null
  /** What upstreams have wanted of this gateway, and the account does not have; null: nothing. */
  readonly wantedScope: string | null
  /** Of that, what a person can grant: the rest is any text of an upstream. */
  readonly grantableScope: string | null
}

/** The last date that there is, milliseconds since the epoch: a server may state an end after it. */
const lastDate = 8.64e15

const timeText = (at: number | null | undefined): string | null =>
  at == null ? null : new Date(Math.min(at, lastDate)).toISOString()

export function stateOf({ state, isRenewing, renewedAt }: CredentialKeeper): CredentialView['state'] {
  if (state.problem !== undefined) return state.problem.kind
  if (isRenewing) return 'renewing'
  return renewedAt === undefined ? 'unused' : 'ready'
}

/** A credential, or the account of it with the gravest problem. @param keepers none: no request has needed it */
export function viewOf(
  { Name: name = '', Type, Per, Scope }: CredentialSetting,
  keepers: readonly CredentialKeeper[],
  { upstreams, clock }: { readonly upstreams: readonly UpstreamSetting[]; readonly clock: Clock },
): CredentialView {
  const gravity = (keeper: CredentialKeeper) => credentialStates.indexOf(stateOf(keeper))
  const [worst] = keepers.toSorted((a, b) => gravity(b) - gravity(a))
  const steady = clock.steady()
  const usable = isForAgentToken({ Type })
    ? worst?.state.problem === undefined
    : keepers.some(({ state }) => isFresh(state, steady))
  const { freshUntil = 0, problem } = worst?.state ?? {}
  const ends = worst !== undefined && isFresh(worst.state, steady) && freshUntil !== Number.POSITIVE_INFINITY
  const isConnected = Type === 'Connect'
  return {
    ...{ name, type: Type, per: isConnected ? Per : null, scope: isConnected ? (Scope ?? null) : null },
    hosts: [...new Set(upstreams.flatMap(({ Credential, Host = '' }) => (Credential === name ? [Host] : [])))],
    state: worst === undefined ? 'unused' : stateOf(worst),
    usable,
    expiresAt: ends ? timeText(clock.now() + freshUntil - steady) : null,
    renewedAt: timeText(worst?.renewedAt),
    lastUsedAt: timeText(worst?.lastUsedAt),
    problem: problem?.text ?? null,
    wantedScope: scopeText(keepers.flatMap(({ wantedScopes }) => wantedScopes)),
  }
}

const scopeText = (scopes: readonly string[] = []): string | null =>
  [...new Set(scopes)].slice(0, maxWantedScopes).join(' ') || null

/** @param keeper absent: no request of this gateway has needed it */
export function accountView(subject: string, row: OpenedRow, keeper: CredentialKeeper | undefined): AccountView {
  const { agentId = null, ownerId = null } = subjectFacts(subject)
  const { access, account } = row.held
  const problem = keeper?.state.problem
  return {
    ...{ agentId, ownerId },
    state: row.state === 'needed' ? 'needed' : (problem?.kind ?? 'ready'),
    ...{ login: account?.login ?? null, scope: account?.scope ?? null },
    ...{ connectedBy: account?.by ?? null, connectedAt: timeText(account?.at) },
    ...{ expiresAt: timeText(access?.until), problem: problem?.text ?? null },
    wantedScope: scopeText(keeper?.wantedScopes),
    grantableScope: scopeText(keeper?.wantedScopes.filter(one => keeper.state.grantable?.includes(one))),
  }
}
