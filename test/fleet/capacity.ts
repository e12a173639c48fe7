/** The figures of docs/fleet-capacity.md are those of the simulation. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { simulateFleet } from '../fixtures/fleet-capacity.ts'

const page = readFileSync(new URL('../../docs/fleet-capacity.md', import.meta.url), 'utf8')
const plan = { cores: 4, perAgent: 10, isPartitioned: false, ms: 5_000 }

const p99 = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b)
  return `${Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0)} ms`
}
const round = (value: number): string => Number(value.toPrecision(2)).toLocaleString('en-US')

t.test('the table of the page is what the simulation finds, and no gateway is fenced', async t => {
  for (const members of [3, 20, 50, 100, 200]) {
    const idle = simulateFleet({ ...plan, members, changes: 0, agents: 0 })
    const busy = simulateFleet({ ...plan, members, changes: 2, agents: 200 })
    const figures = [
      ...[`${members}`, round(idle.cores), round(busy.cores), round(busy.turns), round(busy.leases)],
      ...[round(busy.rows), p99(busy.applied), p99(busy.answered)],
    ]
    const row = `| ${figures.join(' | ')} |`
    t.ok(page.includes(`\n${row}\n`), row)
    t.equal(idle.fenced + busy.fenced, 0)
    t.ok(busy.passed > 0.99, `${busy.passed} of the requests passed`)
  }
})

t.test('200 gateways keep the goals of three: in force within 100 ms, answered within 150 ms', async t => {
  const { applied, answered } = simulateFleet({ ...plan, members: 200, changes: 1, agents: 0 })
  t.ok(Math.max(...applied) < 100, p99(applied))
  t.ok(Math.max(...answered) < 150, p99(answered))
})

t.test('400 gateways do not: the database reads the rows of all in every turn of each', async t => {
  const { answered, cores } = simulateFleet({ ...plan, members: 400, changes: 1, agents: 0, ms: 3_000 })
  t.ok(cores > 2 && Math.max(...answered) > 300, `${cores} cores, ${p99(answered)}`)
})
