/** An agent: its status, its trust, and how the API shows it. */
import type { RefusalCode } from '../base/refusal-kinds.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { AgentRecording } from '../storage/agents.ts'
import type { AgentRecord, AgentStatus } from '../storage/store.ts'

export type Transition = 'activate' | 'deactivate' | 'quarantine' | 'liftQuarantine' | 'revoke'

/**
 * Which statuses a transition starts from, and where it leads. Nothing leads out of Revoked. A quarantined agent
 * cannot be deactivated: activating it afterwards would lift the quarantine by another name.
 */
export const transitions: Readonly<Record<Transition, { from: readonly AgentStatus[]; to: AgentStatus }>> = {
  activate: { from: ['Inactive'], to: 'Active' },
  deactivate: { from: ['Active'], to: 'Inactive' },
  quarantine: { from: ['Active', 'Inactive'], to: 'Quarantined' },
  liftQuarantine: { from: ['Quarantined'], to: 'Active' },
  revoke: { from: ['Active', 'Inactive', 'Quarantined'], to: 'Revoked' },
}

const statusRefusals: Readonly<Record<Exclude<AgentStatus, 'Active'>, RefusalCode>> = {
  Inactive: 'agent_inactive',
  Quarantined: 'agent_quarantined',
  Revoked: 'agent_revoked',
}

/** Why an agent of this status may not act (403); undefined for Active. */
export function refuseStatus(status: AgentStatus): Refusal | undefined {
  return status === 'Active' ? undefined : refuse(statusRefusals[status])
}

/** Why an agent may not act now: it is no longer known (401), or not active (403). */
export function agentProblem(agent: AgentRecord | undefined): Refusal | undefined {
  return agent === undefined ? refuse('unauthenticated') : refuseStatus(agent.status)
}

/** An agent in lists (spec 4.2). */
export interface AgentSummary extends Pick<AgentRecord, 'id' | 'name' | 'ownerId' | 'status' | 'policyName'> {
  /** Live value in [0, 1], rounded to four decimals. */
  readonly trustScore: number
}

export interface AgentDetail extends AgentSummary, Pick<AgentRecord, 'roles' | 'externalSubject' | 'tags'> {
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** What is recorded of its requests until a time; null: as Recording:Mode says. */
  readonly recording: { readonly mode: AgentRecording['mode']; readonly until: string } | null
}

/** The live trust score of an agent at `now` (milliseconds since the epoch), rounded to four decimals. */
export function trustScore(agent: AgentRecord, now: number): number {
  return Math.round(trustNow({ value: agent.trustValue, at: agent.trustAt }, now) * 10_000) / 10_000
}

export function summarise(agent: AgentRecord, now: number): AgentSummary {
  const { id, name, ownerId, status, policyName } = agent
  return { id, name, ownerId, status, policyName, trustScore: trustScore(agent, now) }
}

export function detail(agent: AgentRecord, now: number): AgentDetail {
  const { roles, externalSubject, tags, createdAt, recording } = agent
  return {
    ...{ ...summarise(agent, now), roles, externalSubject, tags, createdAt: new Date(createdAt).toISOString() },
    recording:
      recording === null || recording.until <= now
        ? null
        : { mode: recording.mode, until: new Date(recording.until).toISOString() },
  }
}

/**
 * Trust of an agent over time: pure arithmetic. Trust is kept as a value and the time it was true, and drifts
 * back to the middle from both sides, read lazily, without timers.
 */
export interface Trust {
  /** In [0, 1]. */
  readonly value: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Trust of a new agent, and what every trust drifts back to. */
export const startingTrust = 0.5
/** Trust after a quarantine was lifted: on probation, but above the threshold that would fire again at once. */
export const probationTrust = 0.35

const halfLifeMs = 168 * 3_600_000
const dayMs = 86_400_000
const dailyGain = 0.05

/** Causes of a change of trust: the verdict on a held request is one, the request itself is not. */
export type TrustCause =
  | 'success'
  | 'humanApproval'
  | 'policyDenial'
  | 'humanDenial'
  | 'secretDetected'
  | 'badCredential'

/** Gains shrink as trust nears 1: they are multiplied by 1 - trust. */
const gains: Partial<Record<TrustCause, number>> = { success: 0.002, humanApproval: 0.04 }
const losses: Partial<Record<TrustCause, number>> = {
  policyDenial: 0.02,
  humanDenial: 0.05,
  secretDetected: 0.12,
  badCredential: 0.02,
}
/** So many losses within the window, or losses of two kinds within a day, show that low trust is no accident. */
const certainLosses = 10
const certainKinds = 2

/** Causes that count as a denial for the quarantine by number. */
const denials: ReadonlySet<TrustCause> = new Set<TrustCause>(['policyDenial', 'humanDenial'])

export interface QuarantineRules {
  /** Trust below this quarantines; 0 is off. */
  readonly below: number
  /** So many denials within `windowMs` quarantine; 0 is off. */
  readonly denials: number
  readonly windowMs: number
}

/** Trust and what must be remembered beside it to judge the next event. */
export interface TrustState extends Trust {
  /** Gained by successes since `dayStart`. */
  readonly gained: number
  readonly dayStart: number
  /** Times of the latest denials, oldest first, no more than the rule counts. */
  readonly denials: readonly number[]
  /** Times of the latest losses that the agent caused itself, oldest first. */
  readonly losses: readonly number[]
  /** When each kind of them came last. */
  readonly kinds: Readonly<Partial<Record<TrustCause, number>>>
}

export interface Judgement {
  readonly trust: TrustState
  /** Live trust just before, and its change. */
  readonly before: number
  readonly delta: number
  /** Which rule wants the agent quarantined. */
  readonly quarantine: 'trust' | 'denials' | undefined
}

/** An event that changes trust, and how often it came at that time. */
export interface Happened {
  readonly cause: TrustCause
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly times: number
}

export function trustNow(trust: Trust, now: number): number {
  const age = Math.max(0, now - trust.at)
  return startingTrust + (trust.value - startingTrust) * 2 ** (-age / halfLifeMs)
}

export function startTrust(trust: Trust): TrustState {
  return { ...trust, gained: 0, dayStart: trust.at, denials: [], losses: [], kinds: {} }
}

/** Whether a success would change nothing because the day's gain is used up. Cheap: asked for each answer. */
export function isGainSpent(trust: TrustState, now: number): boolean {
  return trust.gained >= dailyGain && now - trust.dayStart < dayMs
}

/** Trust after an event of that cause. `now` is milliseconds since the epoch. */
export function judge(trust: TrustState, cause: TrustCause, now: number, rules: QuarantineRules): Judgement {
  const before = trustNow(trust, now)
  const sameDay = now - trust.dayStart < dayMs
  const gained = sameDay ? trust.gained : 0
  const delta = change(cause, before, gained)
  const next: TrustState = {
    value: Math.min(1, Math.max(0, before + delta)),
    at: now,
    gained: cause === 'success' ? gained + delta : gained,
    dayStart: sameDay ? trust.dayStart : now,
    denials: denials.has(cause) ? remember(trust.denials, now, rules, rules.denials) : trust.denials,
    losses: isOwnLoss(cause) ? remember(trust.losses, now, rules, certainLosses) : trust.losses,
    kinds: isOwnLoss(cause) ? { ...trust.kinds, [cause]: now } : trust.kinds,
  }
  return { trust: next, before, delta, quarantine: verdict(next, cause, rules) }
}

/** Trust after events, in their order. `before` is live trust just before the first. */
export function judgeAll(
  trust: TrustState,
  events: readonly Happened[],
  rules: QuarantineRules,
): Omit<Judgement, 'delta'> {
  const before = trustNow(trust, events[0]?.at ?? trust.at)
  let last: Omit<Judgement, 'delta'> = { trust, before, quarantine: undefined }
  for (const { cause, at, times } of events) {
    for (let time = 0; time < times; time++) {
      const next = judge(last.trust, cause, at, rules)
      last = { trust: next.trust, before, quarantine: last.quarantine ?? next.quarantine }
    }
  }
  return last
}

/** What is remembered beside trust, as text. */
export function serializeTrust({ value: _, at: __, ...remembered }: TrustState): string {
  return JSON.stringify(remembered)
}

/** @param remembered text of `rememberStanding`; null when nothing is */
export function trustStateOf(trust: Trust, remembered: string | null): TrustState {
  return remembered === null ? startTrust(trust) : { ...JSON.parse(remembered), ...trust }
}

function change(cause: TrustCause, trust: number, gained: number): number {
  if (cause === 'success') return Math.min((gains.success ?? 0) * (1 - trust), Math.max(0, dailyGain - gained))
  const loss = losses[cause]
  if (loss === undefined) return (gains[cause] ?? 0) * (1 - trust)
  // Anyone who knows an agent's id can send a wrong secret for it. That must not push it out of service.
  const floor = cause === 'badCredential' ? Math.min(trust, probationTrust) : 0
  return Math.max(floor, trust - loss) - trust
}

/** Only a loss the agent caused itself can quarantine it. */
function isOwnLoss(cause: TrustCause): boolean {
  return cause !== 'badCredential' && losses[cause] !== undefined
}

/** The times within the window, at most `max` of them. */
function remember(
  times: readonly number[],
  now: number,
  { windowMs }: QuarantineRules,
  max: number,
): readonly number[] {
  return max === 0 ? times : [...times.filter(at => now - at < windowMs), now].slice(-max)
}

function verdict(trust: TrustState, cause: TrustCause, rules: QuarantineRules): Judgement['quarantine'] {
  if (denials.has(cause) && rules.denials > 0 && trust.denials.length >= rules.denials) return 'denials'
  return isOwnLoss(cause) && trust.value < rules.below && isCertain(trust) ? 'trust' : undefined
}

/** One kind of fault alone, now and then, may be a mistake in a policy or of a person. */
function isCertain({ at, losses: times, kinds }: TrustState): boolean {
  if (times.length >= certainLosses) return true
  return Object.values(kinds).filter(last => at - last < dayMs).length >= certainKinds
}
