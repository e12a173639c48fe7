/** What a turn asks the database. */
import type { MemberRow } from '../../fleet/peers.ts'

/** Changes read at a time. */
const mostAtOnce = 500
/** How long changes are kept for other gateways, milliseconds. */
const keptMs = 3_600_000

export interface Row {
  readonly seq: number
  readonly table: 'agents' | 'policies'
  readonly key: string
  readonly payload: string | null
}

export interface Turn {
  /** 1 when this gateway has a row. */
  readonly alive: number
  /** Number of the last change; 0 when there is none. */
  readonly newest: number
  readonly list: readonly Row[]
  readonly members: readonly MemberRow[]
  /** UUID of the history that the database has. */
  readonly epoch: string
}

const nowMs = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** One statement, one snapshot: this gateway lives and has got so far; what came since, and how far the others are. */
export const turnQuery = `with mine as (update members set beat = $2, applied = $3 where id = $1 returning id)
select (select count(*) from mine) as alive,
  coalesce((select max(seq) from changes), 0) as newest,
  (select coalesce(json_agg(c), '[]') from (select * from changes where seq > $4 order by seq limit ${mostAtOnce}) c) as list,
  (select coalesce(json_agg(m), '[]') from (
    select id, beat, applied, name, version, started, digests::json from members) m) as members,
  (select epoch from fleet) as epoch`

export const oldChanges = `delete from changes where at < ${nowMs} - ${keptMs} and seq < (select max(seq) from changes)`
export const oldWrites = `delete from writes where at < ${nowMs} - ${keptMs}`
