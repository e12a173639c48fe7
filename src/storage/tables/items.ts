import { sql } from 'kysely'
import type { Db, HitlRow } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlBrief, HitlItem, HitlRecord } from '../store.ts'

/** The columns of a list. `headers`, `body` and its encoding are left out. */
export const briefColumns = [
  'id',
  'agent_id',
  'owner_id',
  'method',
  'url',
  'body_bytes',
  'reason',
  'decision',
  'policy_name',
  'policy_version',
  'rule',
  'approvals_needed',
  'digest',
  'idempotency_key',
  'created_at',
  'expires_at',
  'status',
  'replay',
  'attempt',
  'lease_until',
  'approved_by',
  'decided_by',
  'decided_at',
  'comment',
  'response_status',
] as const satisfies (keyof HitlRow)[]

export const itemColumns = [...briefColumns, 'headers', 'body', 'body_encoding'] as const satisfies (keyof HitlRow)[]

/** All columns. */
export const rowColumns = [...itemColumns, 'host', 'replay_before'] as const satisfies (keyof HitlRow)[]

type Stored<C extends keyof HitlRow> = Pick<HitlRow, C> & { readonly response_stored: number }
export type BriefRow = Stored<(typeof briefColumns)[number]>
export type ItemRow = Stored<(typeof itemColumns)[number]>

export function toBrief(row: BriefRow): HitlBrief {
  return {
    id: row.id,
    agentId: row.agent_id,
    ownerId: row.owner_id,
    method: row.method,
    url: row.url,
    bodyBytes: row.body_bytes,
    reason: row.reason,
    decision: row.decision,
    policyName: row.policy_name,
    policyVersion: row.policy_version,
    rule: row.rule,
    approvalsNeeded: row.approvals_needed,
    digest: row.digest,
    idempotencyKey: row.idempotency_key,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    status: row.status,
    replay: row.replay,
    attempt: row.attempt,
    leaseUntil: row.lease_until,
    approvedBy: JSON.parse(row.approved_by),
    decidedBy: row.decided_by,
    decidedAt: row.decided_at,
    comment: row.comment,
    responseStatus: row.response_status,
    responseStored: Boolean(row.response_stored),
  }
}

export function toItem(row: ItemRow): HitlItem {
  return { ...toBrief(row), headers: JSON.parse(row.headers), body: row.body, bodyEncoding: row.body_encoding }
}

/** A new pending item. */
export function toRow(record: HitlRecord): HitlRow {
  return {
    id: record.id,
    agent_id: record.agentId,
    owner_id: record.ownerId,
    method: record.method,
    url: record.url,
    host: URL.parse(record.url)?.hostname ?? '',
    headers: JSON.stringify(record.headers),
    body: record.body,
    body_encoding: record.bodyEncoding,
    body_bytes: record.bodyBytes,
    reason: record.reason,
    decision: record.decision,
    policy_name: record.policyName,
    policy_version: record.policyVersion,
    rule: record.rule,
    approvals_needed: record.approvalsNeeded,
    digest: record.digest,
    idempotency_key: record.idempotencyKey,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    ...undecided,
    attempt: 0,
  }
}

/** The state columns of an item that waits with no approval counted. */
export const undecided = {
  status: 'Pending',
  replay: null,
  replay_before: null,
  lease_until: null,
  approved_by: '[]',
  decided_by: null,
  decided_at: null,
  comment: null,
  response_status: null,
} as const satisfies Partial<HitlRow>

const responseStored = sql<number>`case when hitl_sealed.response is null then 0 else 1 end`.as('response_stored')

const selectItem = statement((db, { id }: { id: string }) => items(db).where('hitl.id', '=', id))

/** The item, also when it is past its expiry but not swept yet. */
export async function find(db: Db, id: string): Promise<HitlItem | undefined> {
  const [row] = (await selectItem(db, { id })).rows
  return row && toItem(row)
}

/** The item unless it is pending and past its expiry at `now`. */
export async function findLive(db: Db, id: string, now: number): Promise<HitlItem | undefined> {
  const item = await find(db, id)
  return item && isLive(item, now) ? item : undefined
}

export function isLive(item: HitlItem, now: number): boolean {
  return item.status !== 'Pending' || item.expiresAt > now
}

export function items(db: Db) {
  return db
    .selectFrom('hitl')
    .innerJoin('hitl_sealed', 'hitl_sealed.id', 'hitl.id')
    .select(itemColumns.map(column => `hitl.${column}` as const))
    .select(responseStored)
}
