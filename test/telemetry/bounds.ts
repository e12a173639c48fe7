import t from 'tap'
import { createBounds } from '../../src/telemetry/bounds.ts'
import { bounds as family } from '../../src/telemetry/layout.ts'
import { createMetrics, createMetricsMemory, readTotals } from '../../src/telemetry/metrics.ts'
import { createClock } from '../fixtures/clock.ts'

function open() {
  const clock = createClock()
  const lines: string[] = []
  const memory = createMetricsMemory(1)
  const warn = ({ limit, agentId }: { limit?: string | undefined; agentId?: string | undefined }) =>
    void lines.push(`${limit} ${agentId}`)
  const bounds = createBounds({ clock, log: { warn }, metrics: createMetrics(memory) })
  return { clock, lines, bounds, total: () => new Map(readTotals(memory).of(family)).get('agent_rate') }
}

t.test('each time is counted, and the first a minute is logged for each agent', async t => {
  const { clock, lines, bounds, total } = open()
  for (let i = 0; i < 5; i++) for (const agent of ['a', 'b']) bounds.reached('agent_rate', agent)
  bounds.reached('agent_requests', 'a')
  t.strictSame(lines, ['agent_rate a', 'agent_rate b', 'agent_requests a'])
  t.equal(total(), 10)
  clock.advance(60_000)
  bounds.reached('agent_rate', 'a')
  t.strictSame(lines.slice(3), ['agent_rate a'])
})

t.test('many agents at once fill neither memory nor log', async t => {
  const { lines, bounds, total } = open()
  for (let i = 0; i < 5_000; i++) bounds.reached('agent_rate', `agent-${i}`)
  t.equal(lines.length, 1_000)
  t.equal(total(), 5_000)
})
