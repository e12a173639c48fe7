/** Threat T25 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import { parsePolicy } from '../../../../src/policy/language/parse.ts'
import { createRandom } from '../../../fixtures/random-policy.ts'
import { truthOf } from '../../../fixtures/rulebook.ts'
import t from '../../../fixtures/tap.ts'

const file = new URL('../../../cases/redos_patterns.json', import.meta.url)
const { patterns } = JSON.parse(readFileSync(file, 'utf8')) as { patterns: readonly string[] }

const condition = (value: string) => ({ field: 'input.bodyText', operator: 'matches', value })
const body = (text: string) => ({ request: { method: 'POST', url: 'https://a.example/', body: text } })

function isRefused(value: string): boolean {
  const rules = [{ name: 'r', effect: 'Deny', conditions: [condition(value)] }]
  return 'problems' in parsePolicy({ name: 'p', rules })
}

/** A core that is shared may be slow; exponential patterns take hours. */
const patience = 1_000

const longTexts = [
  'a'.repeat(65_535),
  `${'a'.repeat(65_535)}!`,
  'ab,1 x='.repeat(9_362),
  ' '.repeat(65_536),
  'x'.repeat(65_536),
]

for (const pattern of patterns) {
  t.test(`${pattern.slice(0, 60)} is refused or runs in linear time`, async t => {
    if (isRefused(pattern)) {
      t.pass('refused')
      return
    }
    for (const text of longTexts) {
      const start = performance.now()
      truthOf(condition(pattern), body(text))
      const took = performance.now() - start
      t.ok(took < patience, `${took.toFixed(1)} ms`)
    }
  })
}

/** Text without any repetition that a cache of states could use, with the letters that patterns below ask for. */
function noise(length: number): string {
  const random = createRandom(7)
  return `xc${Array.from({ length: length - 2 }, () => (random() < 0.5 ? 'a' : 'b')).join('')}`
}

t.test('patterns that need much work for each character are bounded', async t => {
  const hostile = [
    ...['[ab]*a[ab]{200}x', '[ab]*a[ab]{900}x', '(a|b)*a(a|b){15}c', '[ab]*a[ab]{20}[^a-z]', '[ab]*a[ab]{800}[^a-z]'],
    ...[`(${'a?'.repeat(200)})+c$`, '(\\w+\\s*){1,20}$', '(\\pL{1,50}a){10}$', '(?i)([ab]*a[ab]{20}[^ab]){1,5}'],
  ]
  const text = noise(65_536)
  for (const pattern of hostile) {
    for (const again of [1, 2, 3]) {
      const start = performance.now()
      truthOf(condition(pattern), body(text))
      const took = performance.now() - start
      t.ok(took < patience / 2, `${pattern.slice(0, 30)}, time ${again}: ${took.toFixed(1)} ms`)
    }
  }
})

t.test('a search that is given up is unreadable, and the pattern still works on other texts', async t => {
  const hostile = condition('[ab]*a[ab]{200}[^a-z]')
  t.equal(truthOf(hostile, body(noise(65_536))), 'E')
  t.equal(truthOf(hostile, body(`a${'b'.repeat(200)}!`)), 'T')
  t.equal(truthOf(hostile, body(noise(300))), 'F')
})

t.test('long lists of words are searched in the whole of a text', async t => {
  const words = Array.from({ length: 100 }, (_, index) => `word${index}`).join('|')
  t.equal(truthOf(condition(`(?i)\\b(${words})\\b`), body(`${'some text with words '.repeat(3_000)} WORD77`)), 'T')
  t.equal(truthOf(condition(`\\b(${words})\\b`), body('some text with words '.repeat(3_000))), 'F')
})

t.test('a text longer than what is searched is unreadable', async t => {
  t.equal(truthOf(condition('b'), body('a'.repeat(65_536))), 'F')
  t.equal(truthOf(condition('b'), body('a'.repeat(65_537))), 'E')
  const start = performance.now()
  t.equal(truthOf(condition('(a+)+$'), body('a'.repeat(1_048_576))), 'E')
  t.ok(performance.now() - start < patience, 'a body of 1 MB keeps nobody waiting')
})

t.test('globs and parts are found in bounded time', async t => {
  const text = 'a'.repeat(1_000_000)
  for (const [operator, value] of [
    ['like', `${'*a'.repeat(400)}*b`],
    ['contains', `${'a'.repeat(1_000)}b`],
    ['like', `*${'?'.repeat(500)}b`],
  ]) {
    const start = performance.now()
    truthOf({ field: 'input.bodyText', operator, value }, body(text))
    const took = performance.now() - start
    t.ok(took < 3 * patience, `${operator}: ${took.toFixed(1)} ms`)
  }
})

t.test('patterns search anywhere in the text, by the rules of RE2', async t => {
  t.equal(truthOf(condition('AKIA[0-9A-Z]{16}'), body('key=AKIAIOSFODNN7EXAMPLE;')), 'T')
  t.equal(truthOf(condition('(?i)DROP'), body('drop table')), 'T')
  t.equal(truthOf(condition('^\\pL+$'), body('straße')), 'T')
})
