/** What PostgreSQL reads, by its own counters: it counts what a connection did when that ends. */
import pg from 'pg'
import type { Test } from 'tap'
import { systemClock } from '../../../src/runtime/clock.ts'
import { isWrite } from '../../../src/storage/methods.ts'
import { run, type StoreOperation } from '../../../src/storage/operations.ts'
import { createBoard } from '../../../src/storage/postgres/board.ts'
import { commit } from '../../../src/storage/postgres/commit.ts'
import { DatabaseConnections } from '../../../src/storage/postgres/connection.ts'
import { StoreHistory } from '../../../src/storage/postgres/history.ts'
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import { leaseTokens } from '../../../src/storage/postgres/rates.ts'
import { latestEvents, prunes, takeTurn } from '../../../src/storage/postgres/turn.ts'
import { planOnce } from '../../../src/storage/postgres/turns.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { type LongLife, longLife, postgresSql } from '../../fixtures/long-life.ts'
import { createSchema, type Server } from '../../fixtures/postgres.ts'
import { type Bounded, byItself, ofPages, times } from './statements.ts'

type Settings = Awaited<ReturnType<typeof createSchema>>

const gateway = '00000000-0000-4000-8000-000000000001'

const countRows = `select
  (select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables where schemaname = current_schema())
  + (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where schemaname = current_schema()) as rows`

/** A schema after a long life, and statements of all gateways that keep it going. */
async function openLongLife(t: Test, server: Server | undefined, life: LongLife): Promise<Settings> {
  const settings = await createSchema(t, server)
  const { admin } = settings
  await (await openPostgresStore({ settings })).close()
  await fill(admin, life)
  await admin.query(
    `insert into members (id, beat, applied, name, version, started, "fenceMs", signs, accepts, digests, addresses)
      values ($1, 1, ${life.past}, 'a', '0', 0, 2000, '{}', '{}', '{}', '{}')`,
    [gateway],
  )
  const { rows: tables } = await admin.query(
    `select tablename as name from pg_tables where schemaname = current_schema()`,
  )
  // While another transaction runs, rows that it may not see are not marked as visible to all.
  const hidden = async () => {
    await admin.query(`vacuum analyze ${tables.map(({ name }) => name).join()}`)
    return (await admin.query(hiddenPages)).rows[0].pages
  }
  await eventually(hidden, pages => pages < 20)
  return settings
}

/**
 * Foreign keys are not checked, and indexes are made of all rows at once. A check would be planned with the statistics of an
 * empty table if anybody analyzed it meanwhile, and take the longer the more rows there are.
 */
async function fill(admin: pg.Client, life: LongLife): Promise<void> {
  const { rows: indexes } = await admin.query<{ name: string; made: string }>(`select c.relname as name,
    pg_get_indexdef(c.oid) as made from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = current_schema()::regnamespace and not i.indisunique`)
  await admin.query(`set session_replication_role = replica; set maintenance_work_mem = '256MB'`)
  for (const { name } of indexes) await admin.query(`drop index ${name}`)
  for (const statement of longLife(postgresSql, life)) await admin.query(statement)
  for (const { made } of indexes) await admin.query(made)
  await admin.query('reset session_replication_role')
}

const hiddenPages = `select coalesce(sum(relpages - relallvisible), 0)::int as pages from pg_class
  where relnamespace = current_schema()::regnamespace and relname in ('hitl', 'audit')`

/** Rows that the statements of `work` read, each done `times` times over a connection of its own. */
async function rowsOf(admin: pg.Client, work: () => Promise<void>): Promise<number> {
  const read = async () => Number((await admin.query(countRows)).rows[0].rows)
  const before = await read()
  await work()
  const others = `select count(*)::int as count from pg_stat_activity where pid <> pg_backend_pid() and application_name = $1`
  const schema = (await admin.query('select current_schema() as name')).rows[0].name
  await eventually(
    async () => (await admin.query(others, [`agent-gateway/${schema}`])).rows[0].count,
    count => count === 0,
  )
  return (await read()) - before
}

/** Operations of the contract. */
async function ask(settings: Settings, asked: StoreOperation): Promise<void> {
  const connections = new DatabaseConnections({ ...settings, poolSize: 1 })
  const history = new StoreHistory()
  const { rows } = await settings.admin.query<{ epoch: string }>('select epoch from fleet')
  history.take({ epoch: rows[0]!.epoch, past: [], isSame: true, lost: null, last: null })
  const parts = { connections, clock: systemClock, subscriptions: [], gateway, history }
  for (let time = 0; time < times; time++) {
    if (isWrite(asked)) {
      await commit(parts, {
        ...{ asked, of: 'people', share: undefined, stop: undefined, writeId: undefined, givenUp: false },
      })
    } else await connections.use(client => run(connections.over(client), asked))
  }
  await connections.close()
}

/** Statements of a fleet, which no operation has. `rows`: that one of them may read. */
const ofFleet = (life: LongLife) => [
  {
    what: 'a turn',
    rows: 30,
    work: (client: pg.Client) =>
      takeTurn(client, {
        ...{ id: gateway, applied: life.past, passed: life.past, passedBy: null, served: true, fleetClock: undefined },
        history: { epoch: undefined, known: { seq: life.past, hash: '' } },
      }),
  },
  ...prunes.map((text, n) => ({
    what: `removal ${n + 1} of each minute`,
    rows: 1_100,
    work: (client: pg.Client) => client.query(text),
  })),
  { what: 'the latest events', rows: 1_100, work: (client: pg.Client) => client.query(latestEvents, [1_000]) },
]

async function turn(settings: Settings, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({
    connectionString: settings.connectionString,
    application_name: `agent-gateway/${settings.schema}`,
  })
  await client.connect()
  await client.query(`set search_path = ${settings.schema}; ${planOnce}`)
  for (let time = 0; time < times; time++) await work(client)
  await client.end()
}

async function share(settings: Settings): Promise<void> {
  const connections = new DatabaseConnections({ ...settings, poolSize: 1 })
  const board = createBoard(connections, gateway, 10_000)
  const limit = { requestsPerMinute: 600, burst: 100 }
  const asks = [{ key: 'agent 1', want: 1, used: 0, returned: 0, debt: 0, leasedAt: 0 }]
  for (let time = 0; time < times; time++) {
    await board.exchange('text')
    await leaseTokens(connections, { limit, asks })
  }
  await connections.close()
}

export function longLifeContract(t: Test, life: LongLife, server?: Server): void {
  t.test('whatever has piled up, each statement reads a bounded number of rows', async t => {
    await measureAll(
      t,
      life,
      (what, rows, most) => t.ok(rows <= times * most, `${what}: ${Math.ceil(rows / times)} rows, at most ${most}`),
      server,
    )
  })
}

type Check = (what: string, rows: number, most: number) => void

/** Does everything that gateways do by themselves, and what the console asks, and counts the rows. */
export async function measureAll(t: Test, life: LongLife, check: Check, server?: Server): Promise<void> {
  const settings = await openLongLife(t, server, life)
  const { admin } = settings
  const checkAll = async (all: readonly Bounded[]) => {
    for (const { what, rows, asked } of all) check(what, await rowsOf(admin, () => ask(settings, asked)), rows)
  }
  await checkAll(ofPages(life))
  for (const { what, rows, work } of ofFleet(life)) {
    check(what, await rowsOf(admin, () => turn(settings, work)), rows)
  }
  check('what gateways show each other, and lease', await rowsOf(admin, () => share(settings)), 40)
  // Last: they change what is there.
  await checkAll(byItself(life))
}
