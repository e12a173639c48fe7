/** Threat T25 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import t from 'tap'
import { compileRegex, maxStepsOfStates, type Regex } from '../../../../src/policy/language/operators/regex.ts'
import { parsePolicy } from '../../../../src/policy/language/parse.ts'
import { threadTimeOf } from '../../../fixtures/cpu-time.ts'
import { createRandom } from '../../../fixtures/random-policy.ts'
import { truthOf } from '../../../fixtures/rulebook.ts'

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
      const took = threadTimeOf(() => truthOf(condition(pattern), body(text)))
      t.ok(took < patience, `${took.toFixed(1)} ms`)
    }
  })
}

/** Text without any repetition that a cache of states could use, with the letters that patterns below ask for. */
function noise(length: number): string {
  const random = createRandom(7)
  return `xc${Array.from({ length: length - 2 }, () => (random() < 0.5 ? 'a' : 'b')).join('')}`
}

/** Turns that a search takes, and the steps of the longest. */
function measured(pattern: string, text: string): { readonly turns: number; readonly longest: number } {
  const search = (compileRegex(pattern, false) as Regex).begin(text)
  let longest = 0
  for (let turns = 1; ; turns++) {
    const budget = { left: stepsOfTurn }
    const isOver = search.advance(budget)
    longest = Math.max(longest, stepsOfTurn - budget.left)
    if (isOver) return { turns, longest }
  }
}

const stepsOfTurn = 65_536

t.test('patterns that need much work for each character take turns, and a bounded number of them', async t => {
  const hostile = [
    ...['[ab]*a[ab]{200}x', '[ab]*a[ab]{900}x', '(a|b)*a(a|b){15}c', '[ab]*a[ab]{20}[^a-z]', '[ab]*a[ab]{800}[^a-z]'],
    ...['(\\w+\\s*){1,20}$', '(\\pL{1,50}a){10}$', '(?i)([ab]*a[ab]{20}[^ab]){1,5}'],
  ]
  let most = 0
  for (const pattern of hostile) {
    const { turns, longest } = measured(pattern, noise(65_536))
    most = Math.max(most, turns)
    t.ok(longest < stepsOfTurn + 32_768, `${pattern.slice(0, 30)}: ${longest} steps in one turn`)
    t.ok(turns <= maxStepsOfStates / stepsOfTurn + 2, `${pattern.slice(0, 30)}: ${turns} turns`)
  }
  t.ok(most > 10, 'some are given up')
})

t.test('a search in the smallest turns finds what RE2 finds', async t => {
  const part = fc.constantFrom(
    ...[
      'a',
      'b',
      '.',
      '[^a]',
      '\\w',
      '\\W',
      '\\b',
      '\\B',
      '^',
      '$',
      '(?m:^)',
      '(?m:$)',
      'é',
      '😀',
      '\\n',
      '(?i:A)',
      '\\pL',
    ],
  )
  const pattern = fc
    .array(fc.tuple(part, fc.constantFrom('', '', '*', '+', '?', '{2}', '|')), { minLength: 1, maxLength: 6 })
    .map(parts => parts.map(([one, many]) => (many === '|' ? `${one}|` : `(?:${one})${many}`)).join(''))
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'A', ' ', '\n', 'é', '😀', '\ud83d', '_'), maxLength: 12 })
  fc.assert(
    fc.property(pattern, text, fc.boolean(), (source, text, ignoreCase) => {
      const search = (compileRegex(source, ignoreCase) as Regex).begin(text)
      while (!search.advance({ left: 1 }));
      return search.found === RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0).test(text)
    }),
    { numRuns: 2_000 },
  )
  t.pass('holds')
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
  const took = threadTimeOf(() => t.equal(truthOf(condition('(a+)+$'), body('a'.repeat(1_048_576))), 'E'))
  t.ok(took < patience, 'a body of 1 MB keeps nobody waiting')
})

t.test('globs and parts are found in bounded time', async t => {
  const text = 'a'.repeat(1_000_000)
  for (const [operator, value] of [
    ['like', `${'*a'.repeat(400)}*b`],
    ['contains', `${'a'.repeat(1_000)}b`],
    ['like', `*${'?'.repeat(500)}b`],
  ]) {
    const took = threadTimeOf(() => truthOf({ field: 'input.bodyText', operator, value }, body(text)))
    t.ok(took < 3 * patience, `${operator}: ${took.toFixed(1)} ms`)
  }
})

t.test('patterns search anywhere in the text, by the rules of RE2', async t => {
  t.equal(truthOf(condition('AKIA[0-9A-Z]{16}'), body('key=AKIAIOSFODNN7EXAMPLE;')), 'T')
  t.equal(truthOf(condition('(?i)DROP'), body('drop table')), 'T')
  t.equal(truthOf(condition('^\\pL+$'), body('straße')), 'T')
})
