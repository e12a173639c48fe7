/** Without WebAssembly loops search and read what its code does otherwise, and find the same. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { findings } from '../../fixtures/findings.ts'
import { hostileText } from '../../fixtures/hostile-texts.ts'

const key = 'AKIAIOSFODNN7EXAMPLE'

t.test('the same is read and found without WebAssembly', async t => {
  const hostile = fc.sample(hostileText, 120).map(text => text.toWellFormed())
  const long = ['x', '\\n', '\\u0041', '\\', '%41', '%', 'aB3/', '+1', ' '].map(
    unit => `${unit.repeat(9_000 / unit.length)} ${key}`,
  )
  const texts = [
    ...hostile,
    ...hostile.map(text => JSON.stringify({ once: text, again: JSON.stringify([text]) })),
    ...hostile.map(text => JSON.stringify(encodeURIComponent(text))),
    ...long,
  ]
  const worker = new Worker(new URL('../child/finder.ts', import.meta.url), {
    workerData: texts,
    execArgv: [...process.execArgv, '--disable-warning=ExperimentalWarning'],
  })
  const [answer] = await once(worker, 'message')
  t.equal(answer.isWithout, true)
  const here = texts.map(findings)
  const differing = texts.filter((_, at) => JSON.stringify(answer.found[at]) !== JSON.stringify(here[at]))
  t.strictSame(differing, [])
  t.ok(here.filter(([secret]) => secret !== undefined).length > 40, 'secrets among them')
  await worker.terminate()
})
