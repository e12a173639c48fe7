import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from '../fixtures/tap.ts'

const tap = new URL('../fixtures/tap.ts', import.meta.url).href

/** Runs a test file and returns what it printed and how it ended. */
function run(directory: string, body: string): { readonly out: string; readonly status: number | null } {
  const file = join(directory, 'file.mjs')
  writeFileSync(file, `import t from '${tap}'\n${body}`)
  const { stdout, status } = spawnSync(process.execPath, [file], {
    encoding: 'utf8',
    env: { ...process.env, NODE_V8_COVERAGE: '' },
  })
  return { out: stdout, status }
}

t.test('tests run in order, with what is around them, and are told one by one', async t => {
  const body = `
    const order = []
    t.beforeEach(() => order.push('before'))
    t.teardown(() => console.log('# last'))
    t.test('a', async t => {
      t.teardown(() => order.push('down 1'))
      t.teardown(() => order.push('down 2'))
      await t.test('inner', () => order.push('inner'))
      t.match({ a: ['xyz', 2], b: 1 }, { a: [/y/], c: undefined })
    })
    t.test('b', t => t.strictSame(order, ['before', 'before', 'inner', 'down 2', 'down 1', 'before']))`
  const { out, status } = run(t.testdir(), body)
  t.equal(status, 0, out)
  t.strictSame(out.match(/^(ok|not ok|1\.\.|# ).*$/gm), ['ok 1 - a', 'ok 2 - b', '# last', '1..2'])
})

const faults: readonly [name: string, body: string, wanted: RegExp][] = [
  ['a failed assertion', `t.test('x', t => { t.equal(1, 2); t.pass() })`, /^not ok 1 - x # 1 failed$/m],
  ['a failed assertion inside', `t.test('x', t => t.test('y', t => t.equal('1', 1)))`, /^not ok 1 - x/m],
  ['strictSame of unequal types', `t.test('x', t => t.strictSame([1], ['1']))`, /^not ok 1 - x/m],
  ['a pattern that misses', `t.test('x', t => t.match({ a: { b: 1 } }, { a: { b: 2 } }))`, /^not ok 1 - x/m],
  ['a missing member', `t.test('x', t => t.match({}, { a: /undefined/ }))`, /^not ok 1 - x/m],
  ['a short array', `t.test('x', t => t.match([1], [1, 2]))`, /^not ok 1 - x/m],
  ['an error', `t.test('x', () => { throw new Error('boom') })`, /boom[\s\S]*^not ok 1 - x/m],
  ['an error in a teardown', `t.test('x', t => t.teardown(() => { throw new Error('boom') }))`, /^not ok 1 - x/m],
  [
    'an error that nobody catches',
    `t.test('x', () => new Promise(() => setImmediate(() => { throw new Error('boom') })))`,
    /^not ok 1 - x$[\s\S]*boom/m,
  ],
  ['a test that asserts nothing', `t.test('x', t => { for (const n of []) t.ok(n) })`, /^not ok 1 - x/m],
  ['nothing thrown', `t.test('x', t => t.throws(() => {}))`, /^not ok 1 - x/m],
  [
    'another error than the one asked for',
    `t.test('x', t => t.rejects(Promise.reject(new TypeError('a')), RangeError))`,
    /^not ok 1 - x/m,
  ],
  ['a test without an end', `t.test('x', () => new Promise(() => {}))`, /^not ok 1 - x$[\s\S]*nothing is left/m],
  [
    'a test that is late',
    `t.test('x', { timeout: 5 }, () => new Promise(() => setInterval(() => {}, 1e3)))`,
    /^not ok 1 - x/m,
  ],
  [
    'an assertion after the end',
    `let late\nt.test('x', t => { late = t })\nt.test('y', () => late.pass())`,
    /^not ok 2 - y/m,
  ],
]

for (const [name, body, wanted] of faults) {
  t.test(`${name} fails the file`, async t => {
    const { out, status } = run(t.testdir(), body)
    t.equal(status, 1)
    t.match(out, wanted)
  })
}
