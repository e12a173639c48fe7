import { type CredentialSetting, isForAgentToken } from '../config/credentials.ts'
import type { UpstreamSetting } from '../config/upstreams.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CredentialKeeper } from './keeper.ts'
import { isFresh } from './state.ts'

export const credentialStates = ['unused', 'ready', 'renewing', 'failing', 'needed'] as const

/** A credential as the API shows it: never its value. */
export interface CredentialView {
  readonly name: string
  readonly type: CredentialSetting['Type']
  /** Hosts that get it, as `Upstreams` writes them. */
  readonly hosts: readonly string[]
  /** `unused`: no request has needed it yet. `failing`: there is a problem, and another attempt may succeed. */
  readonly state: (typeof credentialStates)[number]
  /** Whether requests get it now, although the last attempt to renew it may have failed. */
  readonly usable: boolean
  /** Until when it is sent; null when it does not end, or there is none. */
  readonly expiresAt: string | null
  readonly renewedAt: string | null
  /** When this gateway sent it last, to a second; null since its start. */
  readonly lastUsedAt: string | null
  /** Null when there is none. */
  readonly problem: string | null
}

const timeText = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

export function stateOf({ state, isRenewing, renewedAt }: CredentialKeeper): CredentialView['state'] {
  if (state.problem !== undefined) return state.problem.kind
  if (isRenewing) return 'renewing'
  return renewedAt === undefined ? 'unused' : 'ready'
}

export function viewOf(keeper: CredentialKeeper, upstreams: readonly UpstreamSetting[], clock: Clock): CredentialView {
  const { state, name, setting, renewedAt, lastUsedAt } = keeper
  const { problem, freshUntil, value } = state
  const steady = clock.steady()
  const usable = isForAgentToken(setting) ? problem === undefined : isFresh(state, steady)
  const isEndless = freshUntil === Number.POSITIVE_INFINITY
  return {
    ...{ name, type: setting.Type },
    hosts: [...new Set(upstreams.flatMap(({ Credential, Host = '' }) => (Credential === name ? [Host] : [])))],
    state: stateOf(keeper),
    usable,
    expiresAt:
      usable && !isEndless && value !== undefined ? new Date(clock.now() + freshUntil - steady).toISOString() : null,
    renewedAt: timeText(renewedAt),
    lastUsedAt: timeText(lastUsedAt),
    problem: problem?.text ?? null,
  }
}
