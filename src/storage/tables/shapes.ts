import { sql } from 'kysely'
import { valuesOfBoth } from '../../policy/propose/field-values.ts'
import type { Operations } from '../methods.ts'
import type { Db, ShapeRow } from '../schema.ts'
import type { ShapeCount, ShapeLimits } from '../shapes.ts'
import { presentOf, pruneSamples, samples } from './samples.ts'

/** Rows that one statement writes or reads. */
const maxRows = 500
/** Values of one place that are kept. */
const maxValues = 8
const hourMs = 3_600_000
/** Requests, and different hours, after which a shape is no longer on probation. */
const fewestCount = 3

export const shapes: Operations<'shapes'> = {
  ...samples,

  async add(unit, counts, skipped, limits, now) {
    // Gateways add every few seconds, one after the other.
    await unit.alone('shapes')
    const { db } = unit
    const lost = new Set(skipped)
    const ids = [...new Set([...counts.map(({ agentId }) => agentId), ...skipped])]
    const present = new Set(await presentOf(db, ids))
    const byAgent = Map.groupBy(counts, ({ agentId }) => agentId)
    let free: number | undefined
    for (const [agentId, mine] of byAgent) {
      if (!present.has(agentId)) continue
      const known = await knownOf(db, agentId, mine)
      const isNew = ({ digest }: ShapeCount) => !known.has(digest)
      free ??= limits.max - (await totalOf(db))
      const added = mine.filter(isNew).slice(0, Math.max(0, free))
      free -= added.length
      const merged = mine.filter(one => !isNew(one)).map(one => merge(one, known.get(one.digest), limits))
      if (merged.length + added.length < mine.length) lost.add(agentId)
      await write(db, [...merged, ...added.map(one => merge(one, undefined, limits))])
      if (await evict(db, agentId, limits)) lost.add(agentId)
    }
    const missing = [...lost].filter(id => present.has(id))
    for (const agentId of missing) await noteGap(db, agentId, now)
    return missing
  },

  async of(db, agentId) {
    const rows = await db
      .selectFrom('agent_shapes')
      .select(columns)
      .where('agentId', '=', agentId)
      .orderBy('count', 'desc')
      .orderBy('digest')
      .execute()
    const gap = await db.selectFrom('shape_gaps').select('since').where('agentId', '=', agentId).executeTakeFirst()
    return { shapes: rows.map(toCount), incompleteSince: gap?.since ?? null }
  },

  async clear(unit, agentId, entry) {
    await unit.alone('shapes')
    await unit.db.deleteFrom('agent_shapes').where('agentId', '=', agentId).execute()
    await unit.db.deleteFrom('shape_gaps').where('agentId', '=', agentId).execute()
    await unit.db.deleteFrom('agent_samples').where('agentId', '=', agentId).execute()
    unit.audit(entry)
  },

  async prune({ db }, before, samplesBefore, limit) {
    await pruneSamples(db, samplesBefore, limit)
    const keys = await db
      .selectFrom('agent_shapes')
      .select(['agentId', 'digest'])
      .where('lastAt', '<', before)
      .orderBy('lastAt')
      .limit(limit)
      .execute()
    for (const { agentId, digest } of keys) {
      const gone = db.deleteFrom('agent_shapes').where('agentId', '=', agentId).where('digest', '=', digest)
      // It may have come again meanwhile.
      await gone.where('lastAt', '<', before).execute()
    }
    const gaps = db
      .selectFrom('shape_gaps')
      .select('agentId')
      .where('lastAt', '<', before)
      .orderBy('lastAt')
      .limit(limit)
    await db.deleteFrom('shape_gaps').where('agentId', 'in', gaps).where('lastAt', '<', before).execute()
  },
}

const columns: readonly (keyof ShapeRow)[] = [
  ...(['agentId', 'digest', 'shape', 'outcome', 'values', 'fields'] as const),
  ...(['count', 'firstAt', 'lastAt', 'days', 'probation'] as const),
]

async function knownOf(db: Db, agentId: string, counts: readonly ShapeCount[]): Promise<ReadonlyMap<string, ShapeRow>> {
  const known = new Map<string, ShapeRow>()
  for (let at = 0; at < counts.length; at += maxRows) {
    const digests = counts.slice(at, at + maxRows).map(({ digest }) => digest)
    const of = db.selectFrom('agent_shapes').select(columns).where('agentId', '=', agentId)
    for (const row of await of.where('digest', 'in', digests).execute()) known.set(row.digest, row)
  }
  return known
}

async function totalOf(db: Db): Promise<number> {
  const found = await sql<{ count: number }>`select count(*) as count from agent_shapes`.execute(db)
  return Number(found.rows[0]?.count ?? 0)
}

function merge(one: ShapeCount, known: ShapeRow | undefined, { maxDays }: ShapeLimits): ShapeRow {
  const before = known && toCount(known)
  const count = one.count + (before?.count ?? 0)
  const firstAt = Math.min(one.firstAt, before?.firstAt ?? one.firstAt)
  const lastAt = Math.max(one.lastAt, before?.lastAt ?? one.lastAt)
  const values = one.values.map((added, place) => union(before?.values[place] ?? [], added).slice(0, maxValues))
  const fields = JSON.stringify(valuesOfBoth(before?.fields, one.fields))
  const days = union(before?.days ?? [], one.days).sort((left, right) => left - right)
  const isProven =
    known?.probation === 0 || (count >= fewestCount && Math.floor(firstAt / hourMs) < Math.floor(lastAt / hourMs))
  const { agentId, digest, shape, outcome } = one
  const texts = { values: JSON.stringify(values), fields, days: JSON.stringify(days.slice(-maxDays)) }
  return { agentId, digest, shape, outcome, count, firstAt, lastAt, ...texts, probation: isProven ? 0 : 1 }
}

const union = <T>(left: readonly T[], right: readonly T[]): T[] => [...new Set([...left, ...right])]

async function write(db: Db, rows: readonly ShapeRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += maxRows) {
    await db
      .insertInto('agent_shapes')
      .values(rows.slice(at, at + maxRows))
      .onConflict(of =>
        of.columns(['agentId', 'digest']).doUpdateSet(eb => ({
          values: eb.ref('excluded.values'),
          fields: eb.ref('excluded.fields'),
          count: eb.ref('excluded.count'),
          firstAt: eb.ref('excluded.firstAt'),
          lastAt: eb.ref('excluded.lastAt'),
          days: eb.ref('excluded.days'),
          probation: eb.ref('excluded.probation'),
        })),
      )
      .execute()
  }
}

/** Drops what is too much, only of what is on probation. True when something was dropped. */
async function evict(db: Db, agentId: string, { maxOfAgent }: ShapeLimits): Promise<boolean> {
  const mine = db.selectFrom('agent_shapes').where('agentId', '=', agentId)
  const counted = await mine
    .select(eb => [eb.fn.countAll<number>().as('all'), eb.fn.sum<number>('probation').as('new')])
    .executeTakeFirst()
  const [all, fresh] = [Number(counted?.all ?? 0), Number(counted?.new ?? 0)]
  const keep = Math.max(0, Math.min(Math.floor(maxOfAgent / 4), maxOfAgent - (all - fresh)))
  if (fresh <= keep) return false
  const oldest = await mine
    .select('digest')
    .where('probation', '=', 1)
    .orderBy('lastAt')
    .orderBy('digest')
    .limit(fresh - keep)
    .execute()
  const digests = oldest.map(({ digest }) => digest)
  for (let at = 0; at < digests.length; at += maxRows) {
    const gone = db.deleteFrom('agent_shapes').where('agentId', '=', agentId)
    await gone.where('digest', 'in', digests.slice(at, at + maxRows)).execute()
  }
  return true
}

async function noteGap(db: Db, agentId: string, now: number): Promise<void> {
  await db
    .insertInto('shape_gaps')
    .values({ agentId, since: now, lastAt: now })
    .onConflict(of => of.column('agentId').doUpdateSet({ lastAt: now }))
    .execute()
}

function toCount({ values, fields, days, probation: _, ...row }: ShapeRow): ShapeCount {
  return { ...row, values: JSON.parse(values), fields: JSON.parse(fields), days: JSON.parse(days) }
}
