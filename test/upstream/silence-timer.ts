import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { SilenceTimer } from '../../src/upstream/exchange.ts'
import { eventually } from '../fixtures/gateway.ts'

t.test('silence is late after the limit, and each further part until it stops', async t => {
  let late = 0
  const timer = new SilenceTimer(() => {
    late += 1
  })
  const begun = performance.now()
  timer.begin(40)
  await eventually(
    () => late,
    count => count >= 2,
  )
  t.ok(performance.now() - begun >= 40, 'not before the limit')
  timer.stop()
  t.notOk(timer.runs)
  const before = late
  await setTimeout(30)
  t.equal(late, before)
})

t.test('another limit begins anew, and the same one goes on', async t => {
  let late = 0
  const timer = new SilenceTimer(() => {
    late += 1
  })
  t.teardown(() => timer.stop())
  timer.begin(1_000_000)
  timer.begin(1_000_000)
  timer.restart()
  t.ok(timer.runs)
  timer.begin(8)
  await eventually(
    () => late,
    count => count > 0,
  )
  t.ok(late > 0)
})
