import { sql } from 'kysely'
import type { Db, HitlRow, HitlShownRow } from '../schema.ts'
import { locked, statement } from '../statement.ts'
import type { HitlBrief, HitlItem, HitlRecord } from '../store.ts'

export const itemColumns = [
  'id',
  'agentId',
  'ownerId',
  'method',
  'url',
  'bodyEncoding',
  'bodyBytes',
  'reason',
  'decision',
  'policyName',
  'policyVersion',
  'rule',
  'approvalsNeeded',
  'digest',
  'idempotencyKey',
  'repeatDigest',
  'createdAt',
  'expiresAt',
  'status',
  'replay',
  'attempt',
  'leaseUntil',
  'approvedBy',
  'decidedBy',
  'decidedAt',
  'comment',
  'responseStatus',
] as const satisfies (keyof HitlRow)[]

export const rowColumns = [
  ...itemColumns,
  'host',
  'replayBefore',
  'owner',
  'summary',
  'calls',
  'bytes',
] as const satisfies (keyof HitlRow)[]

type BriefRow = Pick<HitlRow, (typeof itemColumns)[number]>
type ItemRow = BriefRow & Pick<HitlShownRow, 'headers' | 'body' | 'places'> & { readonly responseStored: number }

export function toBrief(row: BriefRow): HitlBrief {
  return { ...row, approvedBy: JSON.parse(row.approvedBy) }
}

function toItem({ headers, body, places, responseStored, ...row }: ItemRow): HitlItem {
  return { ...toBrief(row), headers: JSON.parse(headers), body, places, responseStored: Boolean(responseStored) }
}

/** A new pending item. */
export function toRow(
  { headers: _, body: __, places: ___, call: ____, ...record }: HitlRecord,
  more: Pick<HitlRow, 'calls' | 'bytes'>,
): HitlRow {
  return { ...record, ...more, host: URL.parse(record.url)?.hostname ?? '', ...undecided, attempt: 0 }
}

/** The state columns of an item that waits with no approval counted. */
export const undecided = {
  status: 'Pending',
  replay: null,
  replayBefore: null,
  leaseUntil: null,
  owner: null,
  approvedBy: '[]',
  decidedBy: null,
  decidedAt: null,
  comment: null,
  responseStatus: null,
} as const satisfies Partial<HitlRow>

const responseStored = sql<number>`case when hitl_sealed.response is null then 0 else 1 end`.as('responseStored')

const selectItem = statement((db, { id }: { id: string }) =>
  db
    .selectFrom('hitl')
    .innerJoin('hitl_shown', 'hitl_shown.id', 'hitl.id')
    .innerJoin('hitl_sealed', 'hitl_sealed.id', 'hitl.id')
    .select(itemColumns.map(column => `hitl.${column}` as const))
    .select(['hitl_shown.headers', 'hitl_shown.body', 'hitl_shown.places'])
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

const selectToChange = statement((db, { id }: { id: string }) => locked(db, briefs(db).where('id', '=', id)))

/** The item unless it is pending and past its expiry at `now`. Nobody else changes it before the transaction ends. */
export async function findToChange(db: Db, id: string, now: number): Promise<HitlBrief | undefined> {
  const [row] = (await selectToChange(db, { id })).rows
  const item = row && toBrief(row)
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
  return item.status === 'Pending' ? item.expiresAt > now : item.status !== 'Expired'
}

export function briefs(db: Db) {
  return db.selectFrom('hitl').select(itemColumns)
}
