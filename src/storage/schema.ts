/**
 * The tables as Kysely sees them. Columns have the names of the contract's fields; structured values are JSON text, and
 * flags are numbers. Statements name the columns that they read: a prepared statement that reads all of them fails in a
 * running gateway once a later version adds one.
 */
import type { Generated, Kysely } from 'kysely'
import type { SpendRow } from '../limits/spend-lease.ts'
import type { ConsentRecord, StoredCredential } from './credentials.ts'
import type { RuleHits } from './hits.ts'
import type { ChatIdentity } from './identities.ts'
import type { ChatMessage } from './messages.ts'
import type {
  AgentKey,
  AgentRecord,
  AuditRecord,
  CodeRecord,
  GrantRecord,
  HitlRecord,
  HitlState,
  PolicyRecord,
  ReplayState,
  ShapeCount,
  StoredSample,
  StoredSpend,
  TakenKey,
  ToolDigests,
} from './store.ts'
import type { PushSubscription } from './subscriptions.ts'

export interface AgentRow extends Omit<AgentRecord, 'roles' | 'tags' | 'weakSecret' | 'recording' | 'keys'> {
  readonly roles: string
  readonly tags: string
  readonly weakSecret: number
  /** JSON. */
  readonly recording: string | null
  /** What is remembered beside trust, to judge the next event; null: nothing. */
  readonly standing: string | null
  /** bcrypt. */
  readonly secretHash: string
}

export interface AgentKeyRow extends AgentKey {
  readonly agentId: string
  readonly lastUsedAt: number | null
}

export interface IdentityRow extends ChatIdentity {
  readonly agentId: string
}

export interface HitlRow
  extends Omit<HitlRecord, 'headers' | 'body' | 'places' | 'call'>,
    Omit<HitlState, 'approvedBy' | 'responseStored'> {
  /** Host name of `url` in lower case, without port; empty when `url` is no URL. Kept for filtering. */
  readonly host: string
  readonly approvedBy: string
  /** JSON array of the calls that wait (`tables/calls.ts`); null: it is not withdrawn when calls end. */
  readonly calls: string | null
  /** Value of `replay` before a resend claimed the item; null while the first claim holds it. */
  readonly replayBefore: ReplayState | null
  /** UUID of the gateway that claimed the item last. */
  readonly owner: string | null
  /** What is stored of the request, as far as it counts (`tables/bytes.ts`). */
  readonly bytes: number
}

/** The full view of a request. Apart from `hitl`, so that no list and no verdict reads or writes it. */
export interface HitlShownRow {
  readonly id: string
  readonly headers: string
  readonly body: string
  readonly places: string
}

/** Apart from `hitl` for the same reason. */
export interface HitlSealedRow {
  readonly id: string
  /** Null once it is no longer needed. */
  readonly request: Uint8Array | null
  readonly response: Uint8Array | null
}

/** Changes with `hitl.status` and `hitl.bytes`, in the same transaction. */
export interface HitlTotalsRow {
  /** Empty: of all agents. */
  readonly agentId: string
  /** Pending items, expired ones that are not swept yet among them. */
  readonly waiting: number
  /** Stored of all items, those that were decided too. */
  readonly bytes: number
}

export interface AuditRow extends Omit<AuditRecord, 'details'> {
  /** Canonical JSON. */
  readonly details: string
}

/** `digests` is JSON. */
export interface ToolDigestsRow extends Omit<ToolDigests, 'digests'> {
  readonly digests: string
}

/** A budget of one holder in one window. */
export interface SpendTotalRow extends Omit<StoredSpend, 'leased'> {
  /** 1: people were warned; 2: they were told that it is used up. */
  readonly notified: Generated<number>
}

/** What one gateway has told of it, and may spend beyond that. */
export interface SpendLeaseRow extends Omit<SpendTotalRow, 'raised' | 'notified'> {
  readonly gateway: string
  readonly leased: number
}

export interface ShapeRow extends Omit<ShapeCount, 'values' | 'fields' | 'days'> {
  /** JSON. */
  readonly values: string
  readonly fields: string
  readonly days: string
  /** 1: it makes way for new ones. */
  readonly probation: number
}

/** A whole request, sealed. */
export interface SampleRow extends StoredSample {
  /** Of the sealed request. */
  readonly bytes: number
}

/** Requests of an agent were not recorded. */
export interface ShapeGapRow {
  readonly agentId: string
  readonly since: number
  readonly lastAt: number
}

/** Kept so that it counts once. */
export interface SpendRaiseRow extends SpendRow {
  readonly id: string
  readonly amount: number
}

/** At most one row. */
export interface PushKeyRow {
  readonly one: number
  readonly sealed: Uint8Array
}

export interface DeliveryRow {
  /** Grows in the order of the commits. The numbers of rows that are gone may be given again. */
  readonly id: Generated<number>
  readonly hook: string
  /** Which the event is about. */
  readonly agentId: string
  readonly event: string
  readonly at: number
  /** An EventNote as JSON. */
  readonly payload: string
}

/** The gateway that sends what waits for a hook. */
export interface HookRow {
  readonly hook: string
  readonly owner: string
  readonly leaseUntil: number
}

export interface CredentialRow extends StoredCredential {
  /** Gateway that may use the refresh token until `leaseUntil`. */
  readonly leaseOwner: string | null
  readonly leaseUntil: number | null
}

/** At most one row: how far a verification of the audit trail has got. */
export interface AuditPassRow {
  readonly one: number
  readonly note: Uint8Array
}

/** Always empty: the write probe inserts a row and removes it. */
export interface ProbeRow {
  readonly payload: Uint8Array
}

/** At most one row. */
export interface TokenEpochRow {
  readonly epoch: string
}

export interface Schema {
  agents: AgentRow
  agent_keys: AgentKeyRow
  identities: IdentityRow
  policies: PolicyRecord
  hitl: HitlRow
  hitl_shown: HitlShownRow
  hitl_sealed: HitlSealedRow
  hitl_totals: HitlTotalsRow
  messages: ChatMessage
  push_key: PushKeyRow
  push_browsers: PushSubscription
  grants: GrantRecord
  granted_keys: TakenKey
  seen_tools: ToolDigestsRow
  agent_shapes: ShapeRow
  shape_gaps: ShapeGapRow
  agent_samples: SampleRow
  rule_hits: RuleHits
  spend: SpendTotalRow
  spend_leases: SpendLeaseRow
  spend_raises: SpendRaiseRow
  console_codes: CodeRecord
  credentials: CredentialRow
  consents: ConsentRecord
  token_epoch: TokenEpochRow
  deliveries: DeliveryRow
  hooks: HookRow
  audit: AuditRow
  audit_pass: AuditPassRow
  probe: ProbeRow
}

export type Db = Kysely<Schema>
