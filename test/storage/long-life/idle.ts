/**
 * A gateway that nobody calls asks its store nothing that `statements.ts` and `server.ts` do not bound: a new timer must be
 * listed there.
 */
import pg from 'pg'
import t from 'tap'
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import { eventually, onDatabase, startGateway } from '../../fixtures/gateway.ts'
import { longLife, postgresSql } from '../../fixtures/long-life.ts'
import { createSchema } from '../../fixtures/postgres.ts'
import { measureAll } from './server.ts'

const texts: string[] = []
const { query } = pg.Client.prototype
/** Each statement of this process goes through it: a text, or an object that has one. */
pg.Client.prototype.query = function noting(this: pg.Client, ...given: unknown[]) {
  const [first] = given
  texts.push(typeof first === 'string' ? first : (first as { text: string }).text)
  return Reflect.apply(query, this, given)
} as typeof query

/** Of transactions, sessions and notifications, which read no table, and of the gateway's own row, by its key. */
const plain =
  /^(begin|commit|rollback|notify |select pg_advisory|select coalesce\(bool_and\(pg_try|update members set digests)/

/** Each timer has come to something by then. */
const awaited = [
  ...[/^delete from "hitl"/, /^delete from "grants"/, /^update "hitl" set "replay"/, /^update "hitl" set "status"/],
  ...[
    /from "audit" where "seq" >=/,
    /^insert into "audit_pass"/,
    /^select "createdAt" from "hitl"/,
    /^insert into "hooks"/,
    /^with newest/,
    /^delete from writes/,
  ],
  ...[/^with mine/, /from "deliveries" where "hook" >=/],
]

t.test('a gateway that nobody calls asks nothing that is not bounded', async t => {
  const life = { past: 200, waiting: 200 }
  await measureAll(t, life, () => {})
  const measured = new Set(texts)
  const settings = await createSchema(t)
  const { admin } = settings
  await (await openPostgresStore({ settings })).close()
  for (const statement of longLife(postgresSql, life)) await admin.query(statement)
  // There is something to do for every sweep.
  await admin.query(`update hitl set "expiresAt" = 1 where status = 'Pending' and id like '%5';
    update hitl set replay = 'inFlight', "leaseUntil" = 1 where id = 'past 7';
    update grants set uses = "maxUses" where id like '%1';
    update grants set "expiresAt" = 1 where id like '%2'`)
  const Webhooks = [{ Url: 'http://127.0.0.1:9/', Secret: 'a-secret-of-a-webhook-that-is-long' }]
  texts.length = 0
  await startGateway(t, { config: { ...onDatabase(settings), HumanInTheLoop: { Webhooks } } })
  const started = texts.length
  // On a busy machine some timer comes before the start is over.
  const missing = () => awaited.filter(one => !texts.some(text => one.test(text)))
  await eventually(missing, list => list.length === 0)
  const unknown = [...new Set(texts.slice(started))].filter(text => !measured.has(text) && !plain.test(text))
  t.strictSame(unknown, [])
})
