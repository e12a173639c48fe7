import { sql } from 'kysely'
import type { Db, HitlRow, HitlShownRow } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlBrief, HitlItem, HitlRecord } from '../store.ts'

const itemColumns = [
  'id',
  'agent_id',
  'owner_id',
  'method',
  'url',
  'body_encoding',
  'body_bytes',
  'reason',
  'decision',
  'policy_name',
  'policy_version',
  'rule',
  'approvals_needed',
  'digest',
  'idempotency_key',
  'repeat_digest',
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

/** All columns. */
export const rowColumns = [...itemColumns, 'host', 'replay_before', 'summary'] as const satisfies (keyof HitlRow)[]

type BriefRow = Pick<HitlRow, (typeof itemColumns)[number]>
type ItemRow = BriefRow & Pick<HitlShownRow, 'headers' | 'body'> & { readonly response_stored: number }

export function toBrief(row: BriefRow): HitlBrief {
  return {
    id: row.id,
    agentId: row.agent_id,
    ownerId: row.owner_id,
    method: row.method,
    url: row.url,
    bodyEncoding: row.body_encoding,
    bodyBytes: row.body_bytes,
    reason: row.reason,
    decision: row.decision,
    policyName: row.policy_name,
    policyVersion: row.policy_version,
    rule: row.rule,
    approvalsNeeded: row.approvals_needed,
    digest: row.digest,
    idempotencyKey: row.idempotency_key,
    repeatDigest: row.repeat_digest,
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
  }
}

function toItem(row: ItemRow): HitlItem {
  return {
    ...toBrief(row),
    headers: JSON.parse(row.headers),
    body: row.body,
    responseStored: Boolean(row.response_stored),
  }
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
    repeat_digest: record.repeatDigest,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    summary: record.summary,
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

const selectItem = statement((db, { id }: { id: string }) =>
  db
    .selectFrom('hitl')
    .innerJoin('hitl_shown', 'hitl_shown.id', 'hitl.id')
    .innerJoin('hitl_sealed', 'hitl_sealed.id', 'hitl.id')
    .select(itemColumns.map(column => `hitl.${column}` as const))
    .select(['hitl_shown.headers', 'hitl_shown.body'])
    .select(responseStored)
    .where('hitl.id', '=', id),
)

const selectBrief = statement((db, { id }: { id: string }) => briefs(db).where('id', '=', id))

/** The item unless it is pending and past its expiry at `now`. */
export async function findItem(db: Db, id: string, now: number): Promise<HitlItem | undefined> {
  const [row] = (await selectItem(db, { id })).rows
  const item = row && toItem(row)
  return item && isLive(item, now) ? item : undefined
}

/** The item, also when it is past its expiry but not swept yet. */
export async function find(db: Db, id: string): Promise<HitlBrief | undefined> {
  const [row] = (await selectBrief(db, { id })).rows
  return row && toBrief(row)
}

/** The item unless it is pending and past its expiry at `now`. */
export async function findLive(db: Db, id: string, now: number): Promise<HitlBrief | undefined> {
  const item = await find(db, id)
  return item && isLive(item, now) ? item : undefined
}

export function isLive(item: Pick<HitlBrief, 'status' | 'expiresAt'>, now: number): boolean {
  return item.status !== 'Pending' || item.expiresAt > now
}

export function briefs(db: Db) {
  return db.selectFrom('hitl').select(itemColumns)
}
