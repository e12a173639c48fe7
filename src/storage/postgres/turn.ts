/** What a turn asks the database. */
import { randomInt } from 'node:crypto'
import type { ClientBase } from 'pg'
import type { FleetClock } from '../../fleet/clock.ts'
import type { MemberRow } from '../../fleet/peers.ts'
import { keptEvents } from '../events.ts'
import type { StoreChange } from '../feed.ts'
import { StoreError } from '../store-error.ts'
import { takeNotice } from './connection.ts'
import type { FoundHistory, StoreHistory } from './history.ts'
import { fullBuckets } from './rates.ts'

/** Changes read at a time. */
const maxAtOnce = 500
/** How long changes are kept for other gateways, milliseconds. */
const keptMs = 3_600_000

export interface FeedRow {
  readonly seq: number
  readonly table: StoreChange['table']
  readonly key: string
  readonly payload: string | null
  /** UUID of the commit. */
  readonly write: string
}

export interface Turn extends FoundHistory {
  /** 1 when this gateway has a row. */
  readonly alive: number
  /** Number of the last change; 0 when there is none. */
  readonly newest: number
  readonly list: readonly FeedRow[]
  readonly members: readonly MemberRow[]
  /** The commit of the last change. */
  readonly write: string | null
  /** Time of the database, milliseconds. */
  readonly now: number
  /** How far another gateway is ahead of it, milliseconds. */
  readonly othersAhead: number | null
}

/** State that a gateway writes in a turn, and its knowledge before the turn. */
export interface TurnState {
  readonly id: string
  /** Every change up to this number is in force; -1 while it loads. */
  readonly applied: number
  /** Every change up to this number was passed on. */
  readonly passed: number
  /** The commit of that change. */
  readonly passedBy: string | null
  readonly history: Pick<StoreHistory, 'epoch' | 'known'>
  /** Whether it could serve. */
  readonly served: boolean
  /** Goes by the time of the database; undefined when time is given otherwise. */
  readonly fleetClock: FleetClock | undefined
}

/** Takes a turn, and the time from it. */
export async function takeTurn(client: Pick<ClientBase, 'query'>, state: TurnState): Promise<Turn> {
  const { id, applied, passed, passedBy, history, served, fleetClock } = state
  const { epoch, known } = history
  const sent = fleetClock?.steady() ?? 0
  takeNotice(client)
  const values = [id, randomInt(2 ** 47), applied, passed, epoch, known?.seq, known?.hash, passedBy, fleetClock?.now()]
  const { rows } = await client.query<Turn>({ name: 'turn', text: turnQuery, values })
  const notice = takeNotice(client)
  // As with a COMMIT: no standby has confirmed that this gateway lives, so a new primary may not know it.
  if (notice !== undefined) throw new StoreError(`A turn: ${notice}`)
  const [turn] = rows
  if (turn === undefined) throw new StoreError('The schema has no row in the table fleet')
  fleetClock?.take({ sent, arrived: fleetClock.steady(), ...turn, served })
  return turn
}

/** A gateway that took a turn in this time lives, milliseconds. */
const aliveMs = 2_000

/**
 * One statement, one snapshot: this gateway lives and has got so far; what came since, and how far the others are. In a
 * database that has not the history which the gateway knows, its row stays as it is: the others leave it out.
 */
export const turnQuery = `with newest as (select coalesce(max(seq), 0) as seq from changes),
past as (select clock_ms() as now, epoch, to_json(past) as past, lost, lost is null and epoch = coalesce($5::uuid, epoch)
    and coalesce((select hash from audit where seq = $6) = $7, $6::bigint is null)
    and coalesce((select write from changes where seq = $4) = $8::uuid, $4 <= (select seq from newest)) as same
  from fleet),
mine as (update members set beat = $2, applied = $3,
  seen = (select now from past), ahead = coalesce($9 - (select now from past), 0) where id = $1 and (select same from past) returning id)
select (select count(*) from mine) as alive, (select seq from newest) as newest,
  (select write from changes where seq = (select seq from newest)) as write,
  (select coalesce(json_agg(c), '[]') from (select * from changes where seq > $4 order by seq limit ${maxAtOnce}) c) as list,
  (select coalesce(json_agg(m), '[]') from (
    select id, beat, applied, name, version, started, digests::json, addresses from members) m) as members,
  (select json_build_object('seq', seq, 'hash', hash) from audit order by seq desc limit 1) as last,
  (select ahead from members where id <> $1 and seen > now - ${aliveMs} order by seen desc limit 1) as "othersAhead",
  now, epoch, past, lost, same as "isSame" from past`

/** The latest events, oldest first. */
export const latestEvents = `select (select epoch from fleet) as epoch, (select coalesce(json_agg(e order by seq), '[]')
  from (select seq, payload from changes where "table" = 'events' order by seq desc limit $1) e) as list`

/** Evaluated once: an index on `at` can then be used. */
const oldest = `(select clock_ms()) - ${keptMs}`
/**
 * Not the last change, which numbers the next one; none that a gateway has not seen; and not the latest events. The numbers
 * are compared as expressions, since nearly all of them are smaller: only the time shows which few are old.
 */
const oldChanges = `delete from changes where at < ${oldest}
  and seq + 0 < (select max(seq) from changes)
  and seq + 0 <= coalesce((select min(applied) from members where applied >= 0), 0)
  and ("table" <> 'events' or seq + 0 < (select min(seq)
    from (select seq from changes where "table" = 'events' order by seq desc limit ${keptEvents}) e))`
const oldWrites = `delete from writes where at < ${oldest}`
/** Removes what nobody needs any more. */
export const prunes = [oldChanges, oldWrites, fullBuckets]
