/** What `npm test` takes for a failure. tap itself lets some of these pass. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runFile } from '../fixtures/run-file.ts'
import { testdir } from '../fixtures/testdir.ts'

const { NODE_V8_COVERAGE: _, ...env } = process.env
const cwd = testdir(t)

/** How many tests of such a file pass and fail. */
async function run(body: string): Promise<readonly [passed: number, failed: number]> {
  const file = join(cwd, 'file.mjs')
  writeFileSync(file, `import t from '${import.meta.resolve('tap')}'\n${body}`)
  const { passed, failed } = await runFile(file, { cwd, env })
  return [passed, failed]
}

t.test('tests that pass are counted by their titles', async t => {
  const body = `t.test('x', async t => { t.pass(); await t.test('y', async t => t.pass()) }); t.test('z', async t => t.pass())`
  t.strictSame(await run(body), [2, 0])
})

const faults: Readonly<Record<string, string>> = {
  'a failed assertion': `t.test('x', async t => t.equal(1, 2))`,
  'a loop over nothing': `t.test('x', async t => { for (const n of []) t.ok(n) })`,
  'a loop over nothing inside': `t.test('x', async t => { t.pass(); t.test('y', async t => {}) })`,
  'a skipped test': `t.test('x', { skip: true }, async t => t.pass())`,
  'a skipped test inside': `t.test('x', async t => { t.pass(); t.test('y', { skip: true }, async t => t.pass()) })`,
  'an assertion that is left to do': `t.test('x', async t => t.pass('later', { todo: true }))`,
  'a file without a test': '',
  'a function that is not async': `t.test('x', t => { t.pass() })`,
  'an error that nobody catches': `t.test('x', async t => { t.pass(); setImmediate(() => { throw new Error('boom') }); await new Promise(done => setTimeout(done, 50)) })`,
  'an error in a teardown': `t.test('x', async t => { t.pass(); t.teardown(() => { throw new Error('boom') }) })`,
  'an assertion after the end': `let late; t.test('x', async t => { late = t; t.pass() }); t.test('y', async t => { t.pass(); late.pass() })`,
}

for (const [name, body] of Object.entries(faults)) {
  t.test(`a failure: ${name}`, async t => {
    const [, failed] = await run(body)
    t.ok(failed > 0)
  })
}
