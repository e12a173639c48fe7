/** A short run of the benchmark, on one gateway; bench/README.md says what the long one measures. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { beginCount, counterOption, filesOf, takeCount } from '../../bench/lib/called.ts'
import { openExchanges } from '../../bench/lib/exchanges.ts'
import { roadCalled } from '../../bench/lib/roads.ts'
import type { Contestant } from '../../bench/lib/rounds.ts'
import { measureSlices } from '../../bench/lib/sliced.ts'
import { quantile, ratios } from '../../bench/lib/stats.ts'
import { startNodeUpstream } from '../../bench/lib/upstream.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const upstream = await startNodeUpstream(undefined)
const place = { upstream, cores: undefined, nodeOptions: counterOption }
const contestants = await Promise.all(
  ['gateway', 'bare'].map(async name => ({ name, ...(await roadCalled(name).open(place)) })),
)
const [gateway] = contestants as [Contestant]
t.teardown(() => Promise.all([upstream, ...contestants].map(({ process }) => process?.stop())))

// A machine that does other things too still tells a slip from a fault: the goal is 1.1.
const limit = 1.5

t.test('a request costs little more than in node:http and undici alone', async t => {
  const size = { connections: 32, slices: 8, perSlice: 400, warmup: 0.1, cores: undefined }
  const cpu = await measureSlices(contestants, size)
  const ratio = quantile(ratios(cpu.get('gateway') ?? [], cpu.get('bare') ?? []), 0.5)
  t.ok(ratio > 0 && ratio <= limit, `${ratio.toFixed(2)} x bare, at most ${limit}`)
})

/** The goal is 60, and so many were called when this was written: one more may come before two are joined. */
const mostFiles = 61
/** What the gateway does once a second is not called in each turn of so many requests. */
const turns = 12
const perTurn = 10

t.test(`the way of an allowed GET is through ${mostFiles} files at most`, async t => {
  const { pid } = gateway.process!
  const [exchanges] = await openExchanges(gateway.request, 1, ({ head }) => t.fail(head))
  const get = () =>
    new Promise<boolean>(resolve => {
      exchanges!.onAnswer = (_, good) => resolve(good)
      exchanges!.send()
    })
  await beginCount(pid)
  let files: readonly string[] | undefined
  for (let turn = 0; turn < turns; turn++) {
    for (let sent = 0; sent < perTurn; sent++) t.ok(await get())
    const called = filesOf(await takeCount(pid, root, perTurn))
    files = files?.filter(file => called.includes(file)) ?? called
  }
  t.ok(files?.includes('pipeline/pipeline.ts'), 'calls are counted')
  t.ok(files !== undefined && files.length <= mostFiles, `${files?.length} files: ${files?.toSorted().join(', ')}`)
})
