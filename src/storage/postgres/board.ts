/**
 * Short texts that gateways show each other: counts that need not be exact, in a table that a crash of the server empties.
 * Each gateway sees what the others post while it runs. What cannot be posted or read at once is lost.
 */
import { forgetOldest } from '../../base/records.ts'
import type { DatabaseConnections } from './connection.ts'

export type Board = ReturnType<typeof createBoard>

interface BoardRow {
  readonly member: string
  readonly n: number
  readonly payload: string
}

/** Posts that are kept: gateways that read them late miss older ones. */
const maxKept = 15
/** Maximum of gateways, also former ones, whose posts are distinguished. */
const maxGateways = 1_000
/** Exchanges between two removals of what gateways that are gone have posted. */
const betweenPrunings = 30

const statement = `with mine as (
    insert into notes (member, n, payload) select $1::uuid, $2::bigint, $3::text where $3::text is not null
  ), old as (
    delete from notes where member = $1::uuid and n <= $2::bigint - ${maxKept}
  )
  select member, n, payload from notes
  where member <> $1::uuid and n > coalesce(($4::json ->> member::text)::bigint, -1) order by member, n`

const pruning = 'delete from notes where member not in (select id from members)'

/** @param self id of this gateway among the members; @param limitMs of one exchange */
export function createBoard(connections: DatabaseConnections, self: string, limitMs: number) {
  /** The last post that was seen, by gateway. */
  const lastRead = new Map<string, number>()
  let posted = 0
  let exchanges = 0

  async function ask(text: string, values: readonly unknown[]): Promise<readonly BoardRow[]> {
    const { rows } = await connections.queryInTime({ text, values, limitMs, of: 'agents' })
    return rows
  }

  return {
    /**
     * Shows `text` to the other gateways, and resolves with what they have posted since the last call.
     * @throws StoreError when the database cannot be reached
     */
    async exchange(text: string | undefined): Promise<readonly string[]> {
      const isFirst = exchanges === 0
      const rows = await ask(statement, [self, ++posted, text ?? null, JSON.stringify(Object.fromEntries(lastRead))])
      for (const { member, n } of rows) lastRead.set(member, n)
      forgetOldest(lastRead, maxGateways)
      if (exchanges++ % betweenPrunings === 0) await ask(pruning, [])
      return isFirst ? [] : rows.map(({ payload }) => payload)
    },
  }
}
