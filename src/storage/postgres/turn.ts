/** What a turn asks the database. */
import type { MemberRow } from '../../fleet/peers.ts'
import { keptEvents } from '../events.ts'
import type { Change } from '../feed.ts'
import type { Found } from './history.ts'
import { fullBuckets } from './rates.ts'

/** Changes read at a time. */
const mostAtOnce = 500
/** How long changes are kept for other gateways, milliseconds. */
const keptMs = 3_600_000

export interface Row {
  readonly seq: number
  readonly table: Change['table']
  readonly key: string
  readonly payload: string | null
  /** UUID of the commit. */
  readonly write: string
}

export interface Turn extends Found {
  /** 1 when this gateway has a row. */
  readonly alive: number
  /** Number of the last change; 0 when there is none. */
  readonly newest: number
  readonly list: readonly Row[]
  readonly members: readonly MemberRow[]
  /** The commit of the last change. */
  readonly write: string | null
}

const nowMs = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/**
 * One statement, one snapshot: this gateway lives and has got so far; what came since, and how far the others are. In a
 * database that has not the history which the gateway knows, its row stays as it is: the others leave it out.
 */
export const turnQuery = `with newest as (select coalesce(max(seq), 0) as seq from changes),
past as (select epoch, to_json(past) as past, lost, lost is null and epoch = coalesce($5::uuid, epoch)
    and coalesce((select hash from audit where seq = $6) = $7, $6::bigint is null)
    and coalesce((select write from changes where seq = $4) = $8::uuid, $4 <= (select seq from newest)) as same
  from fleet),
mine as (update members set beat = $2, applied = $3 where id = $1 and (select same from past) returning id)
select (select count(*) from mine) as alive, (select seq from newest) as newest,
  (select write from changes where seq = (select seq from newest)) as write,
  (select coalesce(json_agg(c), '[]') from (select * from changes where seq > $4 order by seq limit ${mostAtOnce}) c) as list,
  (select coalesce(json_agg(m), '[]') from (
    select id, beat, applied, name, version, started, digests::json, addresses from members) m) as members,
  (select json_build_object('seq', seq, 'hash', hash) from audit order by seq desc limit 1) as last,
  epoch, past, lost, same as "isSame" from past`

/** The latest events, oldest first. */
export const latestEvents = `select (select epoch from fleet) as epoch, (select coalesce(json_agg(e order by seq), '[]')
  from (select seq, payload from changes where "table" = 'events' order by seq desc limit $1) e) as list`

/** Not the last change, which numbers the next one; none that a gateway has not seen; and not the latest events. */
const oldChanges = `delete from changes where at < ${nowMs} - ${keptMs}
  and seq < (select max(seq) from changes)
  and seq <= coalesce((select min(applied) from members where applied >= 0), 0)
  and ("table" <> 'events' or seq < (select min(seq)
    from (select seq from changes where "table" = 'events' order by seq desc limit ${keptEvents}) e))`
const oldWrites = `delete from writes where at < ${nowMs} - ${keptMs}`
/** Removes what nobody needs any more. */
export const prunes = [oldChanges, oldWrites, fullBuckets]
