/** A short run of the benchmark against node:http and undici; bench/README.md says what the long one measures. */

import t from 'tap'
import { type Place, roads } from '../../bench/lib/roads.ts'
import { measureSlices } from '../../bench/lib/sliced.ts'
import { quantile, ratios } from '../../bench/lib/stats.ts'
import { startNodeUpstream } from '../../bench/lib/upstream.ts'

// A machine that does other things too still tells a slip from a fault: the goal is 1.1.
const limit = 1.5

t.test('a request costs little more than in node:http and undici alone', async t => {
  const upstream = await startNodeUpstream(undefined)
  const place: Place = { upstream, cores: undefined }
  const contestants = await Promise.all(
    ['gateway', 'bare'].map(async name => {
      const road = roads.find(road => road.name === name)
      if (road === undefined) throw new Error(`no road is called ${name}`)
      return { name, ...(await road.open(place)) }
    }),
  )
  t.teardown(() => Promise.all([upstream, ...contestants].map(({ process }) => process?.stop())))
  const size = { connections: 32, slices: 8, perSlice: 400, warmup: 0.1, cores: undefined }
  const cpu = await measureSlices(contestants, size)
  const ratio = quantile(ratios(cpu.get('gateway') ?? [], cpu.get('bare') ?? []), 0.5)
  t.ok(ratio > 0 && ratio <= limit, `${ratio.toFixed(2)} x bare, at most ${limit}`)
})
