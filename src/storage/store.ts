import type { AgentTable } from './agents.ts'
import type { AuditEntry, AuditTable, Looked, Page } from './audit.ts'
import type { EndedCall, HitlCall } from './calls.ts'
import type { CodeTable } from './codes.ts'
import type { StoredCredentialTable } from './credentials.ts'
import type { DeliveryTable, WebhookSubscription } from './deliveries.ts'
import type { Deadlines, Due } from './due.ts'
import type { Feeds } from './feed.ts'
import type { GrantTable, KeyHolder } from './grants.ts'
import type { Full, HitlLimits } from './hitl-limits.ts'
import type { IdentityTable } from './identities.ts'
import type { MessageTable } from './messages.ts'
import type { PolicyTable } from './policies.ts'
import type { RecordingTables } from './shapes.ts'
import type { ClaimedRaise, SpendTable } from './spend.ts'
import type { SubscriptionTable } from './subscriptions.ts'
import type { TokenTable } from './tokens.ts'
import type { ToolTable } from './tools.ts'

export type { AgentChange, AgentKey, AgentRecord, AgentStatus, AgentTable, KeyUse, Role } from './agents.ts'
export type { AuditEntry, AuditFilter, AuditRecord, AuditTable, ChainLink, Looked, Page, Paged } from './audit.ts'
export type { EndedCall, HitlCall } from './calls.ts'
export type { CodeRecord, CodeTable } from './codes.ts'
export type { Deadlines, Due } from './due.ts'
export type { GrantFilter, GrantRecord, GrantTable, KeyHolder, TakenKey } from './grants.ts'
export type { Full, HitlLimits } from './hitl-limits.ts'
export type { PolicyEdit, PolicyRecord, PolicyTable } from './policies.ts'
export type { RecordedShapes, ShapeCount, StoredSample } from './shapes.ts'
export type * from './spend.ts'
export { orUnavailable, StoreError } from './store-error.ts'
export type { ToolDigests, ToolTable } from './tools.ts'

/**
 * The storage contract. One asynchronous interface, an engine a folder, one contract suite that runs on each
 * (test/storage/contract.ts).
 *
 * Every write takes its audit entry and commits both in one transaction: a change that cannot be recorded is not made. It
 * resolves when its change is durable, and in force for every follower of the feed. A method that rejects has changed
 * nothing. Texts are stored well-formed, with U+FFFD in the place of U+0000. Times are milliseconds since the epoch,
 * given by the caller.
 */
/** Withdrawn: its agent took it back before anybody decided it. Expired: only `history` still shows it. */
export type HitlStatus = 'Pending' | 'Approved' | 'Denied' | 'Withdrawn' | 'Expired'
/** Who causes a call: people must be able to decide and to revoke while agents keep the database busy. */
export type CallerKind = 'people' | 'agents'
export type ReplayState = 'inFlight' | 'completed' | 'failed' | 'unknown'

/** The visible part of a held request: everything in it is redacted or sealed. */
export interface HitlRecord {
  /** 128 random bits or more, URL-safe. */
  readonly id: string
  readonly agentId: string
  readonly ownerId: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sealed, because secrets in bodies cannot be recognised reliably. Opaque to the store. */
  readonly body: string
  /** Where something was found in the body, prepared. Opaque to the store. */
  readonly places: string
  /** Encoding in which the opened body is shown. */
  readonly bodyEncoding: 'utf8' | 'base64'
  readonly bodyBytes: number
  readonly reason: string
  /** The decision record (policy-language section 7) as JSON text. */
  readonly decision: string
  readonly policyName: string | null
  readonly policyVersion: string | null
  readonly rule: string | null
  /** Verdicts needed from different reviewers. */
  readonly approvalsNeeded: number
  /** SHA-256, hex, over the sealed request. */
  readonly digest: string
  readonly idempotencyKey: string | null
  /** SHA-256, hex, over the parts that a repeated request has in common; null when no request can repeat it. */
  readonly repeatDigest: string | null
  readonly createdAt: number
  readonly expiresAt: number
  /** Its entry in lists, prepared, so that long lists read nothing else. Opaque to the store. */
  readonly summary: string
  readonly call: HitlCall
}

export interface HitlState {
  readonly status: HitlStatus
  readonly replay: ReplayState | null
  /** Counts claims; 0 before the first. */
  readonly attempt: number
  readonly leaseUntil: number | null
  readonly approvedBy: readonly string[]
  readonly decidedBy: string | null
  readonly decidedAt: number | null
  readonly comment: string | null
  /** Status code of the upstream's answer to the replay. */
  readonly responseStatus: number | null
  readonly responseStored: boolean
}

export type HitlItem = Omit<HitlRecord, 'summary' | 'call'> & HitlState

/** An item without its full view, which may be megabytes: all that a verdict needs. */
export type HitlBrief = Omit<HitlItem, 'headers' | 'body' | 'places' | 'responseStored'>

/** An item in a list. */
export interface HitlLine
  extends Pick<HitlItem, 'id' | 'agentId' | 'createdAt' | 'expiresAt' | 'approvedBy' | 'approvalsNeeded'> {
  readonly summary: string
}

/** An item in the history. */
export interface HitlPast
  extends HitlLine,
    Pick<HitlState, 'status' | 'replay' | 'attempt' | 'decidedBy' | 'decidedAt' | 'comment' | 'responseStatus'> {}

/** How an item ended, for numbers. */
export type HitlEnd = Pick<HitlState, 'status' | 'decidedBy'> & {
  readonly createdAt: number
  readonly decidedAt: number
}

export type PastCursor = { readonly decidedAt: number; readonly id: string }

/** `before`: only items before this place. */
export interface HitlPastQuery extends Page {
  readonly before?: PastCursor | undefined
}

export interface HitlPastFilter extends Pick<HitlFilter, 'agentId' | 'host' | 'rule'> {
  /** Absent: every status but Pending. */
  readonly statuses?: readonly HitlStatus[]
  readonly replay?: ReplayState
}

export interface HitlFilter {
  readonly agentId?: string
  /** Host name without port, in any case. */
  readonly host?: string
  readonly rule?: string
  readonly after?: Pick<HitlRecord, 'createdAt' | 'id'> | undefined
  readonly limit?: number
}

/** Outcome of one replay attempt, written once. */
export interface ReplayOutcome {
  readonly replay: 'completed' | 'failed' | 'unknown'
  readonly responseStatus: number | null
  /** Sealed upstream answer for the agent; null when it is not kept. */
  readonly sealedResponse: Uint8Array | null
}

/** Ids of requests that `owner` is sending, by whether the lease of the attempt is held or over. */
export interface GatewayAttempts {
  /** UUID of the gateway. */
  readonly owner: string
  readonly held: readonly string[]
  readonly over: readonly string[]
}

export interface HitlTable {
  /**
   * Stores a pending request if the limits allow it. One agent's idempotency key names one item: pending and unexpired, or
   * decided and not yet pruned. `keyUsed`: a grant let a request with this key pass. A record without a key but with a
   * repeat digest joins an item of the agent with the same digest, unless `unjoin` has closed that item.
   */
  insert(
    record: HitlRecord,
    sealed: Uint8Array,
    limits: HitlLimits,
    entry: AuditEntry,
  ): Promise<'stored' | Full | 'keyUsed' | { readonly existing: HitlBrief }>
  /**
   * From now on no request without a key joins the item, and it is not withdrawn when calls end: its outcome was delivered,
   * or its caller polls it by id.
   */
  unjoin(id: string): Promise<void>
  /**
   * A call that waited for the item of `agentId` has ended. When it was the last one, in all gateways, and ended without an
   * answer, the item is withdrawn, unless it stays held because a caller knows its id.
   */
  leave(
    id: string,
    call: EndedCall,
    entry: AuditEntry,
  ): Promise<'notFound' | 'held' | { readonly lost: HitlBrief } | { readonly withdrawn: HitlBrief }>
  /** The pending item for which a call with that key waits, in any gateway. */
  waitedFor(agentId: string, cancelKey: string, now: number): Promise<string | undefined>
  /** The holder of an idempotency key of an agent: a held request, or the use of a grant. */
  keyHolder(agentId: string, key: string, now: number): Promise<KeyHolder | undefined>
  /** Undefined when unknown, or pending and past its expiry at `now`. Without `of`: a call of people. */
  get(id: string, now: number, of?: CallerKind): Promise<HitlItem | undefined>
  /** The same item without its full view. */
  brief(id: string, now: number, of?: CallerKind): Promise<HitlBrief | undefined>
  /** Pending and unexpired, oldest first (createdAt, id). */
  pending(now: number, filter?: HitlFilter): Promise<readonly HitlLine[]>
  /** Items that no longer wait, until they are pruned; latest decided first (decidedAt, id). */
  history(page: HitlPastQuery, filter?: HitlPastFilter): Promise<Looked<HitlPast, PastCursor>>
  /** How items ended since then, latest first. Of more than 5,000 the latest: then `isWhole` is false. */
  ends(since: number): Promise<{ readonly ends: readonly HitlEnd[]; readonly isWhole: boolean }>
  oldestPending(now: number): Promise<number | undefined>
  countPending(now: number): Promise<number>
  sealed(id: string): Promise<Uint8Array | undefined>
  sealedResponse(id: string): Promise<Uint8Array | undefined>
  /**
   * Adds the approval of `reviewer`, who counts once, and drops the approvals of `withdrawn`. The last approval needed claims
   * the item, in one conditional update (Pending and expiresAt > now). With `resend`, claims an Approved item whose replay is
   * failed or unknown. The entry gets digest and attempt; a repeated approval of one reviewer writes no entry.
   */
  claim(
    id: string,
    claim: {
      readonly reviewer: string
      readonly comment: string | null
      readonly now: number
      readonly leaseUntil: number
      /** UUID of the gateway that sends it. */
      readonly owner: string
      readonly resend: boolean
      readonly withdrawn: readonly string[]
      readonly raise?: ClaimedRaise | undefined
    },
    entry: AuditEntry,
  ): Promise<'notFound' | 'notRaised' | { lost: HitlBrief } | { claimed: HitlBrief } | { waiting: HitlBrief }>
  /**
   * Nothing was sent: the item is Pending again, without approvals, if `attempt` still holds the claim. After a resend it is
   * Approved again with its earlier outcome, since an earlier attempt may have reached the upstream.
   *
   * @param approvalsNeeded from now on; absent: as before
   */
  release(id: string, attempt: number, entry: AuditEntry, approvalsNeeded?: number): Promise<boolean>
  /**
   * Records the outcome if `attempt` still holds the claim; drops the sealed request when completed. A claim is held until its
   * outcome is recorded or a resend takes it over, even after its lease has run out.
   */
  recordOutcome(id: string, attempt: number, outcome: ReplayOutcome, entry: AuditEntry): Promise<boolean>
  deny(
    id: string,
    verdict: { readonly reviewer: string; readonly comment: string | null; readonly now: number },
    entry: AuditEntry,
  ): Promise<'notFound' | { readonly lost: HitlBrief } | { readonly denied: HitlBrief }>
  /**
   * Withdraws a pending item of `agentId`. Its idempotency key is free again, since nothing was sent. The fields and the body
   * are gone: `headers`, `body` and `places` are empty.
   */
  withdraw(
    id: string,
    by: { readonly agentId: string; readonly now: number },
    entry: AuditEntry,
  ): Promise<'notFound' | { readonly lost: HitlBrief } | { readonly withdrawn: HitlBrief }>
  /** Extends the time of a pending item; never shortens it. */
  extend(
    id: string,
    time: { readonly now: number; readonly expiresAt: number },
    entry: AuditEntry,
  ): Promise<'notFound' | { readonly lost: HitlBrief } | { readonly extended: HitlBrief }>
  /** What a sweep would find. Of several gateways any may be the one that does it. */
  due(at: Deadlines): Promise<Due>
  /**
   * Ends up to `limit` pending items that expired at `now`, each with an audit entry. Returns their ids. They stay in the
   * history, without the sealed request.
   */
  expire(now: number, limit: number): Promise<readonly string[]>
  /**
   * Marks replays as unknown, each with an audit entry: those of the owner in `own.over`, and up to `limit` whose lease ran
   * out at `now`, except those of the owner in `own.held`, who measures their leases with the steady clock. Returns their ids.
   */
  lapse(now: number, ofGateway: GatewayAttempts, limit: number): Promise<readonly string[]>
  /** Removes decided items older than `before`, up to `limit`. */
  prune(before: number, limit: number): Promise<number>
}

export interface Store extends RecordingTables {
  readonly agents: AgentTable
  readonly identities: IdentityTable
  readonly policies: PolicyTable
  readonly hitl: HitlTable
  readonly messages: MessageTable
  readonly subscriptions: SubscriptionTable
  readonly grants: GrantTable
  readonly tools: ToolTable
  readonly tokens: TokenTable
  readonly spend: SpendTable
  readonly codes: CodeTable
  readonly credentials: StoredCredentialTable
  readonly deliveries: DeliveryTable
  readonly audit: AuditTable
  /** Rejects when the store cannot be read and written. */
  ping(): Promise<void>
  /** Every change of agents, policies, stored credentials and of the tokens that are valid, and events. */
  readonly feed: Feeds
  /** Hooks for which events are left in the store from now on, instead of those of the start. */
  subscribe(hooks: readonly WebhookSubscription[]): Promise<void>
  close(): Promise<void>
}
