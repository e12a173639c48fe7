import t from 'tap'
import { judgeCpu, judgeMemory, judgeStarts } from '../../bench/lib/goals.ts'
import type { Measured } from '../../bench/lib/rounds.ts'

const measured = (name: string, slices: readonly number[], saturated: readonly number[]): Measured => ({
  ...{ name, slices, residentBytes: undefined },
  rounds: saturated.map(cpu => ({ perSecond: 1, cpu, p50: 1, p99: 1 })),
})

t.test('a goal is held against the worse of slices and saturated rounds', async t => {
  const [busy] = judgeCpu([measured('gateway', [10, 10], [15, 15]), measured('haproxy-100', [10, 10], [10, 10])], 1)
  t.match(busy, { value: { median: 1.5 }, sliced: { median: 1 }, saturated: { median: 1.5 }, met: false })
  const [idle] = judgeCpu([measured('gateway', [13], [10]), measured('haproxy-100', [10], [10])], 1.2)
  t.match(idle, { value: { median: 1.3 }, limit: 1.1 * 1.2, met: true })
})

t.test('a column without figures is left out, and a goal without any too', async t => {
  const paced = judgeCpu([measured('events', [2], []), measured('events-haproxy', [2], [])], 1)
  t.match(paced, [{ sliced: { median: 1 }, saturated: undefined, met: true }])
  t.strictSame(judgeCpu([measured('events', [], []), measured('events-haproxy', [], [])], 1), [])
})

t.test('the ratios of several starts are judged by their median', async t => {
  const goal = { what: 'a row', of: 'gateway', against: 'haproxy-100', atMost: 1.1 }
  const [judged] = judgeStarts([{ goal, sliced: [1, 1.2, 1.1], saturated: [1.3, 1.2, 1.4] }], 1)
  t.match(judged, { what: 'a row, 3 starts of each', value: { median: 1.3 }, met: false })
})

t.test('memory that was above its goal is judged under load and ten seconds later', async t => {
  const road = { ...measured('post-1m', [], []), residentBytes: 200 * 2 ** 20, restingBytes: 100 * 2 ** 20 }
  t.match(judgeMemory([road, measured('haproxy-100', [], [])], 1), [
    { value: { median: 200 }, met: false },
    { value: { median: 100 }, met: true },
  ])
})
