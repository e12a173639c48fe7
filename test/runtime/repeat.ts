import t from 'tap'
import { repeatable } from '../../src/runtime/repeat.ts'

t.test('what is asked for a thousand times while it runs is done once more, and never twice at once', async t => {
  const runs: PromiseWithResolvers<void>[] = []
  const ask = repeatable(() => {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    return run.promise
  })
  const finish = async () => {
    runs.at(-1)?.resolve()
    await new Promise(setImmediate)
  }
  ask()
  for (let times = 0; times < 1_000; times++) ask()
  t.equal(runs.length, 1)
  await finish()
  t.equal(runs.length, 2)
  await finish()
  t.equal(runs.length, 2)
  ask()
  t.equal(runs.length, 3)
})
