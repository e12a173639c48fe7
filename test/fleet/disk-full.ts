/** A server that finds no room for more. */
import { randomBytes } from 'node:crypto'
import { fault } from '../fixtures/fleet/fault.ts'
import { outcomes } from '../fixtures/fleet/ledger.ts'
import { startLoad } from '../fixtures/fleet/load.ts'
import { eventually } from '../fixtures/gateway.ts'
import { limitFiles } from '../fixtures/postgres-faults.ts'

/** Of one file: the test of free space needs a little more. */
const mostBytes = 2 ** 20
const roomy = { HumanInTheLoop: { MaxPendingRequests: 1_000, MaxPendingPercentPerAgent: 100 } }

fault(19, 'the disk is full', { ownServer: { hasSmallFiles: true }, config: roomy }, async (t, fleet) => {
  const { a, db, members, server } = fleet
  const bot = await fleet.bot()
  const reads = startLoad(() => fleet.get(a, bot), 1)
  const pids = async (): Promise<readonly number[]> => {
    const { rows } = await db.query(`select pid from pg_stat_activity where backend_type = 'client backend'`)
    return [server!.pid, ...rows.map(({ pid }) => pid)]
  }
  const health = () => Promise.all(members.map(at => fleet.call(at, { method: 'GET', path: '/health' })))
  const untilHealthIs = (wanted: number) =>
    eventually(health, all => all.every(({ status }) => status === wanted)).then(outcomes)
  limitFiles(mostBytes, await pids())
  let count = 0
  // Nothing that can be compressed.
  const hold = () => fleet.hold(members[count++ % 3]!, bot, { body: randomBytes(60_000).toString('base64') })
  const held = [await hold()]
  while (held.filter(({ status }) => status === 503).length < 6 && held.length < 60) held.push(await hold())
  t.strictSame(outcomes(held), ['202', '503 store_unavailable'])
  const stored = held.filter(({ status }) => status === 202).length
  const { rows } = await db.query(`select (select count(*) from hitl)::int as hitl,
    (select count(*) from audit where action = 'hitl.suspend')::int as suspended`)
  t.strictSame(rows, [{ hitl: stored, suspended: stored }], 'nothing is half done')
  t.equal((await fleet.revoke(a, await fleet.bot())).status, 200, 'what has room goes on')
  t.strictSame(await untilHealthIs(503), ['503'], 'health says so in all gateways')
  limitFiles('unlimited', await pids())
  const again = await eventually(hold, ({ status }) => status === 202)
  t.equal(again.status, 202, 'no gateway was started again')
  t.strictSame(await untilHealthIs(200), ['200'])
  // On a busy machine a turn may be late; turns that failed would fence all three until there is room again.
  const read = await reads.end()
  const other = outcomes(read).filter(outcome => !['200', '503 fenced'].includes(outcome))
  t.strictSame(other, [])
  const served = read.filter(({ status }) => status === 200).length / read.length
  t.ok(served > 0.8, `${served} of the reads are served`)
})
