/**
 * The tables as Kysely sees them. Structured values are JSON text, times are milliseconds since the epoch.
 */
import type { Kysely } from 'kysely'
import type { AgentStatus, HitlStatus, ReplayState } from './store.ts'

export interface AgentRow {
  id: string
  name: string
  owner_id: string
  status: AgentStatus
  policy_name: string | null
  /** JSON array. */
  roles: string
  external_subject: string | null
  /** JSON object. */
  tags: string
  trust_value: number
  trust_at: number
  created_at: number
  /** bcrypt. */
  secret_hash: string
  /** 1 when the secret is weak. */
  weak_secret: number
}

export interface PolicyRow {
  name: string
  document: string
  created_at: number
  updated_at: number
}

export interface HitlRow {
  id: string
  agent_id: string
  owner_id: string
  method: string
  url: string
  /** Host name of `url` in lower case, without port; empty when `url` is no URL. Kept for filtering. */
  host: string
  body_encoding: 'utf8' | 'base64'
  body_bytes: number
  reason: string
  /** JSON text, kept as it came. */
  decision: string
  policy_name: string | null
  policy_version: string | null
  rule: string | null
  approvals_needed: number
  digest: string
  idempotency_key: string | null
  repeat_digest: string | null
  created_at: number
  expires_at: number
  status: HitlStatus
  replay: ReplayState | null
  /** What `replay` was before a resend claimed the item; null when the first claim holds it. */
  replay_before: ReplayState | null
  attempt: number
  /** Not null from a claim until its outcome is written, also after the lease lapsed. */
  lease_until: number | null
  /** JSON array. */
  approved_by: string
  decided_by: string | null
  decided_at: number | null
  comment: string | null
  response_status: number | null
  summary: string
}

/** What is shown of a request in full. Apart from `hitl`, so that no list and no verdict reads or writes it. */
export interface HitlShownRow {
  id: string
  /** JSON object. */
  headers: string
  body: string
}

/** Apart from `hitl` for the same reason. */
export interface HitlSealedRow {
  id: string
  /** Null once it is not needed any more. */
  request: Uint8Array | null
  response: Uint8Array | null
}

/** Changes with `hitl.status`, in the same transaction. */
export interface HitlWaitingRow {
  /** Empty: of all agents. */
  agent_id: string
  /** Pending items, expired ones that are not swept yet among them. */
  waiting: number
}

export interface GrantRow {
  id: string
  agent_id: string
  policy_name: string
  rule: string
  method: string
  origin: string
  path: string
  max_uses: number
  uses: number
  hitl_id: string
  granted_by: string
  created_at: number
  expires_at: number
}

/** An idempotency key of a request that a grant let pass. */
export interface GrantedKeyRow {
  agent_id: string
  idempotency_key: string
  expires_at: number
}

export interface AuditRow {
  seq: number
  at: number
  actor: string
  action: string
  subject: string
  request_id: string | null
  /** Canonical JSON. */
  details: string
  previous: string
  hash: string
}

/** Always empty: the write probe inserts a row and removes it. */
export interface ProbeRow {
  payload: Uint8Array
}

export interface Schema {
  agents: AgentRow
  policies: PolicyRow
  hitl: HitlRow
  hitl_shown: HitlShownRow
  hitl_sealed: HitlSealedRow
  hitl_waiting: HitlWaitingRow
  grants: GrantRow
  granted_keys: GrantedKeyRow
  audit: AuditRow
  probe: ProbeRow
}

export type Db = Kysely<Schema>

/** The methods of a table of the contract as functions of a connection. Each runs inside one transaction. */
export type Operations<T> = {
  readonly [M in keyof T]: T[M] extends (...args: infer A) => infer R ? (db: Db, ...args: A) => R : never
}
