import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import type { SampleLimits, StoredSample } from '../shapes.ts'

export const samples: Pick<Operations<'shapes'>, 'keepSamples' | 'samples'> = {
  async keepSamples(unit, all, limits) {
    await unit.alone('shapes')
    const { db } = unit
    const present = new Set(await presentOf(db, [...new Set(all.map(({ agentId }) => agentId))]))
    const full = new Set<string>()
    let free: number | undefined
    for (const [agentId, mine] of Map.groupBy(all, sample => sample.agentId)) {
      if (!present.has(agentId)) continue
      free ??= limits.maxBytes - (await bytesOf(db))
      const kept = chosen(mine, await countsOf(db, agentId), { ...limits, maxBytes: free })
      if (kept.isFull) full.add(agentId)
      for (const sample of kept.samples) {
        const bytes = sample.sealed.byteLength
        free -= bytes
        await db
          .insertInto('agent_samples')
          .values({ ...sample, bytes })
          .execute()
      }
    }
    return [...full]
  },

  async samples(db, agentId) {
    const columns = ['id', 'agentId', 'digest', 'at', 'sealed'] as const
    const mine = db.selectFrom('agent_samples').select(columns).where('agentId', '=', agentId)
    return await mine.orderBy('at').orderBy('id').execute()
  },
}

export async function pruneSamples(db: Db, before: number, limit: number): Promise<void> {
  const old = db.selectFrom('agent_samples').select('id').where('at', '<', before).orderBy('at').limit(limit)
  await db.deleteFrom('agent_samples').where('id', 'in', old).execute()
}

/** Those of the agents that are registered. */
export async function presentOf(db: Db, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('agents').select('id').where('id', 'in', ids).execute()
  return rows.map(({ id }) => id)
}

/** Those that the limits allow, and whether some were left out that are not the last of their shape. */
function chosen(samples: readonly StoredSample[], counts: ReadonlyMap<string, number>, limits: SampleLimits) {
  const ofShape = new Map(counts)
  let count = [...counts.values()].reduce((sum, one) => sum + one, 0)
  let free = limits.maxBytes
  let isFull = false
  const kept = samples.filter(({ digest, sealed }) => {
    const alike = ofShape.get(digest) ?? 0
    if (alike >= limits.maxOfShape) return false
    if (count >= limits.maxOfAgent || sealed.byteLength > free) {
      isFull = true
      return false
    }
    ofShape.set(digest, alike + 1)
    count += 1
    free -= sealed.byteLength
    return true
  })
  return { samples: kept, isFull }
}

async function countsOf(db: Db, agentId: string): Promise<ReadonlyMap<string, number>> {
  const mine = db.selectFrom('agent_samples').where('agentId', '=', agentId)
  const rows = await mine
    .select(eb => ['digest', eb.fn.countAll<number>().as('count')])
    .groupBy('digest')
    .execute()
  return new Map(rows.map(({ digest, count }) => [digest, Number(count)]))
}

async function bytesOf(db: Db): Promise<number> {
  const found = await db
    .selectFrom('agent_samples')
    .select(eb => eb.fn.sum<number>('bytes').as('bytes'))
    .executeTakeFirst()
  return Number(found?.bytes ?? 0)
}
