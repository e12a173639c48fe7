/** What `npm test` takes for a failure. tap itself lets some of these pass. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runFiles } from '../fixtures/run-files.ts'
import { testdir } from '../fixtures/testdir.ts'

const { NODE_V8_COVERAGE: _, ...env } = process.env

/** How many tests of each of these files pass and fail in one process. */
async function run(...bodies: readonly string[]): Promise<readonly (readonly [passed: number, failed: number])[]> {
  const cwd = testdir(t)
  const files = bodies.map((body, index) => {
    const file = join(cwd, `${index}.mjs`)
    writeFileSync(file, `import t from 'tap'\n${body}`)
    return file
  })
  const { results } = await runFiles(files, { cwd, env })
  return results.map(({ passed, failed }) => [passed, failed])
}

const good = `t.test('x', async t => t.pass())`

t.test('tests that pass are counted by their titles, in each file', async t => {
  const two = `t.test('x', async t => { t.pass(); await t.test('y', async t => t.pass()) }); t.test('z', async t => t.pass())`
  t.strictSame(await run(two, good), [
    [2, 0],
    [1, 0],
  ])
})

t.test('what a file tears down is gone before the next begins', async t => {
  const first = `t.teardown(() => { globalThis.isGone = true }); ${good}`
  const second = `t.test('x', async t => t.ok(globalThis.isGone))`
  t.strictSame(await run(first, second), [
    [1, 0],
    [1, 0],
  ])
})

const faults: Readonly<Record<string, string>> = {
  'a failed assertion': `t.test('x', async t => t.equal(1, 2))`,
  'a loop over nothing': `t.test('x', async t => { for (const n of []) t.ok(n) })`,
  'a loop over nothing inside': `t.test('x', async t => { t.pass(); t.test('y', async t => {}) })`,
  'a skipped test': `t.test('x', { skip: true }, async t => t.pass())`,
  'a skipped test inside': `t.test('x', async t => { t.pass(); t.test('y', { skip: true }, async t => t.pass()) })`,
  'an assertion that is left to do': `t.test('x', async t => t.pass('later', { todo: true }))`,
  'a file without a test': '',
  'a file that cannot be read': 'const t = 1',
  'a file that throws': `${good}; throw new Error('boom')`,
  'an error that nobody catches': `t.test('x', async t => { t.pass(); setImmediate(() => { throw new Error('boom') }); await new Promise(done => setTimeout(done, 50)) })`,
  'a rejection that nobody catches': `t.test('x', async t => { t.pass(); Promise.reject(new Error('boom')); await new Promise(done => setTimeout(done, 50)) })`,
  'an error after the test that caused it': `t.test('x', async t => { t.pass(); setTimeout(() => { throw new Error('boom') }, 10) }); t.test('y', async t => { t.pass(); await new Promise(done => setTimeout(done, 50)) })`,
  'an error in a teardown': `t.test('x', async t => { t.pass(); t.teardown(() => { throw new Error('boom') }) })`,
  'an error in the teardown of the file': `t.teardown(() => { throw new Error('boom') }); ${good}`,
  'an assertion after the end': `let late; t.test('x', async t => { late = t; t.pass() }); t.test('y', async t => { t.pass(); late.pass() })`,
}

const results = await run(...Object.values(faults).flatMap(fault => [fault, good]))
for (const [index, name] of Object.keys(faults).entries()) {
  t.test(`a failure, but not of the next file: ${name}`, async t => {
    t.ok(results[2 * index]![1] > 0)
    t.strictSame(results[2 * index + 1], [1, 0])
  })
}

t.test('an error that nobody catches is of the test that runs, not of those that wait', async t => {
  const cause = `t.test('x', async t => { t.pass(); setImmediate(() => { throw new Error('boom') }); await new Promise(done => setTimeout(done, 50)) })`
  t.strictSame(await run(`${cause}; ${good}; ${good}`), [[2, 1]])
})

const ends: Readonly<Record<string, string>> = {
  'that ends the process': `t.test('x', async () => process.exit(0))`,
  'with a function that is not async': `t.test('x', t => { t.pass() })`,
}

for (const [name, body] of Object.entries(ends)) {
  t.test(`a file ${name} fails, and so do those behind it`, async t => {
    const [before, ending, after] = await run(good, body, good)
    t.strictSame(before, [1, 0])
    t.ok(ending![1] > 0)
    t.strictSame(after, [0, 1])
  })
}

const badEnds: Readonly<Record<string, string>> = {
  'ends badly': `process.on('exit', () => process.kill(process.pid, 'SIGKILL'))`,
  'meets an error at its end': `process.on('exit', () => { throw new Error('boom') })`,
}

for (const [name, body] of Object.entries(badEnds)) {
  t.test(`a process that ${name} is a failure of its last file`, async t => {
    const [before, last] = await run(good, `${body}; ${good}`)
    t.strictSame(before, [1, 0])
    t.ok(last![1] > 0)
  })
}
