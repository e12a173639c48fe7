import t from 'tap'
import { FairShare } from '../../../src/telemetry/tracing/fair-share.ts'
import { createSampler, isInRatio, newId, newTraceIn } from '../../../src/telemetry/tracing/sampling.ts'

const sampled = (traceId = newId(16)) => ({ traceId, spanId: newId(8), isSampled: true })

t.test('a new trace is recorded by the ratio, and its id says so to everybody', async t => {
  const ids = Array.from({ length: 2_000 }, () => newTraceIn(0.25)).filter(id => id !== undefined)
  t.ok(ids.length > 300 && ids.length < 700, String(ids.length))
  t.ok(ids.every(id => /^[0-9a-f]{32}$/.test(id) && isInRatio(id, 0.25)))
  t.strictSame(
    [newTraceIn(0), isInRatio('f'.repeat(32), 0), isInRatio(`${'0'.repeat(31)}1`, 1)],
    [undefined, false, true],
  )
})

t.test('T85: the flag of an agent counts for so many requests a second; then the ratio decides', async t => {
  const sample = createSampler({ Ratio: 0, Parent: 'Follow' }, 3)
  const count = (agentId: string, now: number) =>
    Array.from({ length: 10 }, () => sample(sampled(), { agentId, now })).filter(Boolean).length
  t.equal(count('a', 0), 3)
  t.equal(count('b', 0), 3, 'another agent has its own')
  t.equal(count('a', 500), 1)
  t.equal(count('a', 60_000), 3)
  t.equal(sample({ ...sampled(), isSampled: false }, { agentId: 'c', now: 0 }), false)
})

t.test('with Parent: Ratio the flag does not count', async t => {
  const sample = createSampler({ Ratio: 0.5, Parent: 'Ratio' }, 10)
  const of = { agentId: 'a', now: 0 }
  t.equal(sample({ ...sampled('f'.repeat(32)), isSampled: false }, of), true)
  t.equal(sample(sampled(`${'f'.repeat(18)}${'0'.repeat(14)}`), of), false)
})

t.test('T85: one agent fills a quarter of the queue at most, and leaves room for the others', async t => {
  const share = new FairShare(8)
  const enter = (agentId: string) => share.enter({ agentId })
  t.strictSame([enter('a'), enter('a'), enter('a')], [true, true, false])
  t.strictSame(['b', 'b', 'c', 'c', 'd', 'd', 'e'].map(enter), [true, true, true, true, true, true, false])
  share.leave('a')
  t.strictSame([enter('e'), enter('a')], [true, false])
})
