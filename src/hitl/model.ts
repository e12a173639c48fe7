/** Types of human in the loop: held requests, reviewers, and the options that the parts of this folder share. */
import type { Readable } from 'node:stream'
import { escapeLines } from '../base/deceptive.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { BudgetSettings } from '../config/budgets.ts'
import type { Config } from '../config/schema.ts'
import type { SpendRow } from '../limits/spend-lease.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord, AuditEntry, ClaimedRaise, HitlBrief, HitlCall, HitlItem, Store } from '../storage/store.ts'
import type { SpanIds } from '../telemetry/tracing/span.ts'
import type { AttemptLease } from './attempts.ts'
import type { EventLog } from './events.ts'
import type { BodyFindings } from './findings.ts'
import { shortUrl } from './short-url.ts'

/** A request as it will be sent, without the gateway's token and hop-by-hop fields. */
export interface HeldRequest {
  readonly method: string
  /** Absolute URL, exactly the text that was decided on. */
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
}

/** Input of a decision that is not part of the request, kept because it cannot be read again at the approval. */
export interface HeldFacts {
  /** Header fields as received, flat; without the values of those that carry tokens. */
  readonly rawHeaders: readonly string[]
  readonly claims: Readonly<Record<string, unknown>>
  readonly clientIp: string
  /** Which credentials it would be sent with; empty: none. Absent in requests of earlier versions. */
  readonly credentials?: string
  /** SHA-256, hex, of the token that it came with, if a credential is had for that one. */
  readonly tokenDigest?: string | undefined
}

/** The members of a decision that this folder reads; the whole decision is stored. */
export interface HeldDecision {
  /** Source of the decision: `rule`, `risk`, `default`, ... */
  readonly source: string
  /** The credential that its rule names. Absent in requests of earlier versions. */
  readonly credential?: string | null
  readonly policy: string | null
  readonly policyVersion: string | null
  readonly rule: string | null
  readonly reason: string
  readonly publicReason: string
  readonly ruleReason: string | null
  readonly title: string | null
  readonly operation: string | null
  /** What a chat shows, if the request may be approved there. */
  readonly chat?: readonly { readonly field: string; readonly value: string }[] | null
  /** Verdicts of different reviewers that the rule asks for. */
  readonly approvals: number
  readonly matched: readonly unknown[]
  readonly risk: { readonly score: number; readonly threshold: number; readonly signals: readonly unknown[] } | null
}

/** SHA-256, hex, of parts of a request as it is sent. Two requests have the same part when these are equal. */
export interface PartDigests {
  /** The part of the URL after the question mark. */
  readonly query: string
  /** Names and values of all header fields, in their order. */
  readonly fields: string
  readonly body: string
}

/** The budget at whose limit a request was held, and whose it is. */
export interface HeldBudget extends Pick<SpendRow, 'holder' | 'until'> {
  readonly name: string
  readonly of: BudgetSettings['Of']
}

/** The decision as it is stored, with facts about the held request. */
export interface StoredDecision extends HeldDecision, Pick<HeldFacts, 'credentials'> {
  readonly digests: PartDigests
  /** Absent, or null, for a request that was held for another reason. */
  readonly budget?: HeldBudget | null
  /** Absent when the body was not searched, and for a body with a content coding. */
  readonly findings?: Pick<BodyFindings, 'counts'>
  /** Ids of the span of the held request; absent when it was not recorded. */
  readonly trace?: SpanIds
}

export const maxIdempotencyKey = 255

export interface Suspension {
  readonly request: HeldRequest
  readonly facts: HeldFacts
  readonly decision: HeldDecision
  readonly budget?: HeldBudget | undefined
  /** Findings in the body; undefined when it was not searched. */
  readonly findings?: BodyFindings | undefined
  readonly agent: Pick<AgentRecord, 'id' | 'ownerId'>
  /** Ids of its span; undefined when it is not recorded. */
  readonly trace?: SpanIds | undefined
  /** Value of the Idempotency-Key field: the same key and request name the same pending request. */
  readonly idempotencyKey?: string | undefined
  /**
   * Absent: the agent gets the id. Otherwise a repeated request of the agent without a key joins this one until its outcome
   * was delivered.
   */
  readonly call?: HitlCall
  readonly requestId: string | null
}

export interface Suspended {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The caller: an agent of the registry with its current roles. */
export type Person = Pick<AgentRecord, 'id' | 'ownerId' | 'roles'>

/** A verdict that was given in a chat, for the trail. */
export interface ChatOrigin {
  readonly via: 'slack'
  readonly user: string
  readonly channel: string
  readonly message: string
}

export interface Verdict {
  readonly reviewer: Person
  /** At most 2,000 characters. Kept as given. */
  readonly comment?: string | null | undefined
  readonly requestId: string | null
  /** Digests of the request that the reviewer saw: any other is not decided. Absent: not checked. */
  readonly digests?: readonly string[] | undefined
  readonly origin?: ChatOrigin | undefined
}

/** Terms of a grant: requests that pass without review for a while (`hitl/grants.ts`). */
export interface GrantTerms {
  /** 1 to 480. */
  readonly minutes: number
  /** 1 to 1,000. */
  readonly maxUses: number
  /** Path that it covers; `*` is one segment, `**` at the end is the rest. Absent: the path of the request. */
  readonly path?: string | undefined
}

export interface Approval extends Verdict {
  /** Sends a request again that was sent before without a known outcome. */
  readonly resend?: boolean | undefined
  readonly grant?: GrantTerms | undefined
  /** Adds to the limit of the budget at which it was held, for the window in which it was. */
  readonly raise?: { readonly amount: number } | undefined
}

export interface ApprovedRaise extends Verdict {
  readonly budget: HeldBudget
  readonly amount: number
}

/** Why an approved request was not sent. */
export interface NotSent extends Refusal {
  /** Approvals that the policy in force now asks for, when they are more than the request has. */
  readonly approvalsNeeded?: number
}

/** The outcome of sending a held request. */
export type ReplayResult =
  /** No byte was sent: refused by policy, egress or circuit, or never connected. It stays pending. */
  | { readonly kind: 'notSent'; readonly refusal: NotSent }
  /** `body` rejects when the upstream breaks off. `rawHeaders` and `trailers` are end-to-end fields only. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly rawHeaders: readonly string[]
      readonly body: AsyncIterable<Uint8Array>
      /** Complete once `body` has ended. */
      readonly trailers: () => readonly string[]
    }
  /** Bytes were sent, and no answer came. */
  | { readonly kind: 'failed'; readonly refusal: Refusal }

export interface SendContext extends Pick<AttemptLease, 'sendBefore' | 'isLate' | 'abandoned'> {
  readonly hitlId: string
  readonly facts: HeldFacts
  readonly agentId: string
  /** Ids of the span of the held request; undefined when it was not recorded. */
  readonly trace: SpanIds | undefined
  /** Verdicts of different reviewers that it has. */
  readonly approvals: number
  readonly requestId: string | null
}

/**
 * Sends on a connection of its own, at most once, if the agent's policy, egress and circuit allow it now. A rejection
 * counts as failed.
 */
export type SendRequest = (request: HeldRequest, context: SendContext) => Promise<ReplayResult>

export type Approved =
  /** The upstream's answer. The receiver of `body` must read or destroy it; the replay is recorded in either case. */
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The upstream's fields, and the gateway's own `Gateway-Hitl-*`. */
      readonly rawHeaders: readonly string[]
      readonly body: Readable
    }
  /** Counted; further reviewers must approve. */
  | { readonly kind: 'waiting'; readonly item: HitlBrief }

/** The upstream's answer as kept for the agent. */
export interface StoredAnswer {
  readonly status: number
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
  readonly trailers: readonly string[]
}

/** A limit of the queue, of one agent or of all. */
export type QueueBound = 'hitl_queue' | 'agent_hitl_queue' | 'hitl_bytes' | 'agent_hitl_bytes' | 'webhook_messages'

export interface HitlOptions {
  readonly store: Pick<Store, 'hitl' | 'grants' | 'deliveries' | 'audit'>
  /** This process among the gateways: who claims. */
  readonly member: { readonly id: string; readonly name: string }
  readonly clock: Clock
  readonly settings: Config['HumanInTheLoop']
  /** 32 bytes each, used for nothing else. The first seals; the others open requests sealed before a rotation. */
  readonly sealingKeys: readonly [Uint8Array, ...Uint8Array[]]
  /** Name of the field that carries agent tokens; always redacted. */
  readonly tokenHeader: string
  readonly events: Pick<EventLog, 'subscribe'>
  /** Called in the gateway that has recorded it: a reviewer denied a request of the agent, or an approved one was answered. */
  readonly noteVerdict: (agentId: string, verdict: 'humanApproval' | 'humanDenial') => void
  /** Called in the gateway in which a held request got its verdict. */
  /** Called with a request that was denied, while it is still known; absent: nothing is recorded. */
  readonly onDenied?: (item: HitlBrief, request: HeldRequest) => void
  readonly onDecided: (item: HitlBrief, verdict: 'approved' | 'denied' | 'withdrawn') => void
  readonly send: SendRequest
  /** The raise of an approval, which is stored with it. */
  readonly raiseOf: (item: HitlBrief, approval: ApprovedRaise) => ClaimedRaise | Refusal
  /** Puts a refused verdict on record. */
  readonly noteRefusal: (entry: AuditEntry) => Promise<unknown>
  /** Why the agent may not call now; undefined when it is active. */
  readonly agentProblem: (agentId: string) => Refusal | undefined
  /** The agent of that id if it may decide requests now. */
  readonly reviewerOf: (id: string) => Person | undefined
  /** Name of an agent of the registry, for reviewers. */
  readonly agentName: (agentId: string) => string | undefined
  /** Names of the header fields that the gateway adds when it sends the request. */
  readonly addedFields: (item: Pick<HitlItem, 'agentId' | 'url' | 'headers' | 'decision'>) => readonly string[]
  /** Aborts when the gateway stops: calls that wait for a verdict are answered then. */
  readonly stopping: AbortSignal
  /**
   * Called for each request that a bound of the queue refuses, and for an agent whose messages to a webhook are dropped.
   */
  readonly onFull: (bound: QueueBound, agentId: string, requestId: string | null) => void
  /** Called for faults that change no answer: an outcome that could not be recorded. */
  readonly report: (what: string, error: unknown) => void
}

/** What entries of the audit trail say of a held request: which one, and what it asks for under which rule. */
export function entryDetails({ agentId, digest, method, url, rule }: HitlBrief) {
  return { agentId, digest, method, url: shortUrl(url), rule }
}

export function verdictEntry(
  now: number,
  verdict: Verdict,
  done: { readonly action: string; readonly item: HitlBrief } & Readonly<Record<string, unknown>>,
): AuditEntry {
  const { action, item, ...more } = done
  return {
    at: now,
    actor: verdict.reviewer.id,
    requestId: verdict.requestId,
    action,
    subject: item.id,
    details: { ...entryDetails(item), comment: verdict.comment ?? null, ...verdict.origin, ...more },
  }
}

/** The refusal of a verdict on a request that was already decided or withdrawn: the outcome on record. */
export function decided(item: HitlBrief): Refusal {
  return refuse(item.status === 'Withdrawn' ? 'withdrawn' : 'already_decided', undefined, {
    members: {
      hitlId: item.id,
      hitlStatus: item.status,
      replay: item.replay,
      attempt: item.attempt,
      decidedBy: item.decidedBy,
      decidedAt: item.decidedAt === null ? null : new Date(item.decidedAt).toISOString(),
      comment: item.comment === null ? null : escapeLines(item.comment),
      responseStatus: item.responseStatus,
    },
  })
}
