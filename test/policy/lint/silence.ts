import t from 'tap'
import { formatPolicy } from '../../../src/policy/language/format.ts'
import { parsePolicy } from '../../../src/policy/language/parse.ts'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

const host = { field: 'input.host', operator: 'eq', value: 'a.example' }
const withSilence = (silence: unknown, rest: object = {}) => ({
  name: 'p',
  rules: [{ name: 'r', effect: 'Allow', conditions: [host], silence, ...rest }],
})
const silence = [{ code: 'W_ANY_ORIGIN', reason: 'the printers speak http' }]

function problems(document: unknown): string[] {
  const parsed = parsePolicy(document)
  return 'problems' in parsed ? parsed.problems.map(({ code, path, message }) => `${code} ${path} ${message}`) : []
}

t.test('a silenced warning is kept apart, with the reason', async t => {
  const { warnings, silenced } = lintPolicy(policyOf(withSilence(silence)))
  t.strictSame(warnings, [])
  t.match(silenced, [{ code: 'W_ANY_ORIGIN', path: 'rules[0]', reason: 'the printers speak http' }])
})

t.test('it silences no other rule and no other warning', async t => {
  const { rules } = withSilence(silence) as { rules: object[] }
  const other = { name: 'other', effect: 'Allow', conditions: [host] }
  const negated = { field: 'input.headers.x', operator: 'ne', value: 'a' }
  const { warnings } = lintPolicy(policyOf({ name: 'p', rules: [...rules, { ...other, conditions: [host, negated] }] }))
  const found = warnings.map(({ code, rule }) => `${code} ${rule}`)
  t.ok(found.includes('W_ANY_ORIGIN other'), found.join())
  t.ok(found.includes('W_NEGATED_ALLOW other'), found.join())
  t.notOk(found.includes('W_ANY_ORIGIN r'))
})

t.test('a silence that silences nothing is a warning, which cannot be silenced', async t => {
  const unused = withSilence([...silence, { code: 'W_ANY_ALLOW', reason: 'x' }])
  t.match(lintPolicy(policyOf(unused)).warnings, [
    { code: 'W_UNUSED_SILENCE', path: 'rules[0].silence[1]', message: /the rule has no warning W_ANY_ALLOW/ },
  ])
  t.match(problems(withSilence([{ code: 'W_UNUSED_SILENCE', reason: 'x' }])), [
    /^E_VALUE rules\[0\]\.silence\[0\]\.code /,
  ])
})

t.test('a rule in shadow may silence what is not yet to be said', async t => {
  const shadow = withSilence([...silence, { code: 'W_SHADOW_OLD', reason: 'a long trial' }], { mode: 'shadow' })
  t.strictSame(lintPolicy(policyOf(shadow)).warnings, [])
  t.strictSame(lintPolicy(policyOf(shadow), { now: 40 * 86_400_000, unchangedSince: 0 }).warnings, [])
})

t.test('code and reason are required, and checked', async t => {
  const cases: [unknown, RegExp][] = [
    ['W_ANY_ORIGIN', /^E_VALUE rules\[0\]\.silence silence must be a list/],
    [['W_ANY_ORIGIN'], /^E_VALUE rules\[0\]\.silence\[0\] must be a map with code and reason/],
    [[{ code: 'W_ANY_ORIGIN' }], /^E_VALUE rules\[0\]\.silence\[0\]\.reason reason must say/],
    [[{ code: 'W_ANY_ORIGIN', reason: ' ' }], /^E_VALUE rules\[0\]\.silence\[0\]\.reason/],
    [[{ code: 'W_ANY_ORIGIN', reason: 'x'.repeat(513) }], /^E_VALUE rules\[0\]\.silence\[0\]\.reason/],
    [[{ reason: 'x' }], /^E_VALUE rules\[0\]\.silence\[0\]\.code code must be one of W_/],
    [[{ code: 'W_ANY_ORIGN', reason: 'x' }], /did you mean W_ANY_ORIGIN\?/],
    [[{ code: 'W_ANY_ORIGIN', reason: 'x', until: 1 }], /^E_UNKNOWN_KEY rules\[0\]\.silence\[0\]\.until/],
    [[...silence, ...silence], /^E_DUPLICATE rules\[0\]\.silence\[1\]/],
    [new Array(100).fill(silence[0]), /^E_VALUE rules\[0\]\.silence silence must be a list/],
  ]
  for (const [given, expected] of cases) t.match(problems(withSilence(given)), [expected], JSON.stringify(given))
})

t.test('it is part of the document of the policy', async t => {
  const policy = policyOf(withSilence(silence))
  t.match(formatPolicy(policy).rules, [{ silence }])
  t.strictSame(policyOf(JSON.parse(JSON.stringify(formatPolicy(policy)))), policy)
})
