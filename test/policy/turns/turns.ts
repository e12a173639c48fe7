/** Decisions on long bodies are made in turns that each do a bounded share, and are what a decision at once would be. */

import t from 'tap'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import {
  BodyDecision,
  decideHead,
  evaluateBody,
  PendingDecision,
  withBody,
} from '../../../src/policy/evaluation/decide.ts'
import type { Decision } from '../../../src/policy/evaluation/decision.ts'
import { explainDescription, type OpenExplanation, openExplanation } from '../../../src/policy/evaluation/explain.ts'
import { decisionOf } from '../../../src/policy/evaluation/record.ts'
import type { Rulebook } from '../../../src/policy/evaluation/rulebook.ts'
import type { DescribedRequest } from '../../../src/policy/request/describe.ts'
import { defaultRisk } from '../../../src/policy/risk/risk-signals.ts'
import { collect } from '../../fixtures/memory.ts'
import { described, policyOf, rulebookOf, rulebookOfCompiled } from '../../fixtures/rulebook.ts'

const key = 'AKIAIOSFODNN7EXAMPLE'
const longText = 262_144

function request(body: unknown, headers: Record<string, string> = {}): DescribedRequest {
  return described({
    request: { method: 'POST', url: 'https://new.example/x', body, headers },
    agent: { hostSeen: false },
  })
}

const detects = (field: string, quantifier = 'any', value = 'secret') => ({
  field,
  operator: 'detects',
  value,
  quantifier,
})

/** Deny rules, so that the whole record is compared. */
function rulesOn(...conditions: object[]): Rulebook {
  const rules = conditions.map((condition, at) => ({ name: `r${at}`, effect: 'Deny', conditions: [condition] }))
  return rulebookOf({ name: 'p', default: 'Allow', rules }, { risk: defaultRisk })
}

interface Taken {
  readonly decision: Decision
  readonly turns: number
  /** Most steps of one turn. */
  readonly steps: number
}

function inTurns(rulebook: Rulebook, { head, body }: DescribedRequest): Taken {
  const need = decideHead(rulebook, head)
  if (!('need' in need)) throw new Error('decided without the body')
  const open = new BodyDecision(rulebook, head, need, body)
  let steps = 0
  for (let turns = 1; turns < 1_000; turns++) {
    const decision = open.takeTurn()
    steps = Math.max(steps, open.steps)
    if (decision !== undefined) return { decision, turns, steps }
  }
  throw new Error('takes no end')
}

function atOnce(rulebook: Rulebook, { head, body }: DescribedRequest): Decision {
  const need = decideHead(rulebook, head)
  if (!(need instanceof PendingDecision)) throw new Error('decided without the body')
  return decisionOf(evaluateBody(withBody(need.evaluation, body)))
}

const allowAll = rulebookOf({ name: 'p', default: 'Allow', rules: [] }, { risk: defaultRisk })
const score = { field: 'risk.score', operator: 'gt', value: '0.9' }
/** Beginnings of account numbers and tokens, each of which takes a closer look. */
const spaced = 'AA11 BB22 xoxp-xoxp-xoxp-xoxp- '.repeat(longText / 31)
const list = (text: string, count: number) => Array.from({ length: count }, (_, at) => `${at} ${text}`)

t.test('a decision in turns is the decision at once', async t => {
  const rows: [string, Rulebook, DescribedRequest][] = [
    ['long text', rulesOn(detects('input.bodyText'), detects('input.bodyText', 'any', 'pii')), request(spaced)],
    ['long text, key at the end', rulesOn(detects('input.bodyText', 'any', 'pii,secret')), request(`${spaced} ${key}`)],
    ['allowed, key at the end', allowAll, request(`${spaced} ${key}`)],
    ['allowed, address at the end', allowAll, request(`${spaced} a@example.com`)],
    [
      'long JSON with escapes, key at the end',
      rulesOn(detects('input.bodyText', 'any', 'pii'), detects('input.bodyText')),
      request({ a: `${spaced}\n${key}` }),
    ],
    ['rule on the score', rulesOn({ field: 'risk.score', operator: 'gt', value: '0.3' }), request(`${spaced} ${key}`)],
    [
      'rules on score and text',
      rulesOn(score, detects('input.bodyText', 'any', 'pii')),
      request(`${spaced} a@example.com`),
    ],
    ['one long string', rulesOn(detects('input.body.a')), request({ a: spaced + key })],
    [
      'many strings',
      rulesOn(detects('input.body[*].a', 'any', 'pii')),
      request(list(spaced.slice(0, 999), 250).map(a => ({ a }))),
    ],
    [
      'all of many',
      rulesOn(detects('input.body', 'all')),
      request([...list(`${spaced.slice(0, 999)} ${key}`, 250), '']),
    ],
    [
      'equal strings',
      rulesOn(detects('input.body')),
      request(Array.from({ length: 10_000 }, () => 'the same text 123')),
    ],
    [
      'no rule on the text',
      rulesOn({ field: 'input.body.b', operator: 'eq', value: '1' }),
      request({ a: spaced, b: 1 }),
    ],
    [
      'a form',
      rulesOn(detects('input.body.a')),
      request(`a=${spaced}`, { 'content-type': 'application/x-www-form-urlencoded' }),
    ],
    [
      'cut off',
      rulesOn(detects('input.bodyText')),
      { ...request(spaced), body: { bytes: Buffer.from(spaced), complete: false } },
    ],
  ]
  for (const [name, rulebook, given] of rows) {
    const { decision, turns } = inTurns(rulebook, given)
    t.strictSame(decision, atOnce(rulebook, given), name)
    t.ok(turns > 1 && turns < 60, `${name}: ${turns} turns`)
  }
})

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))

/** Bodies that take long to read or to compare, each in another way. */
const heavyBodies: Record<string, DescribedRequest> = {
  numbers: request(Array.from({ length: 60_000 }, (_, at) => at)),
  'long numbers': request(`[${Array.from({ length: 20_000 }, (_, at) => `0.12345678901234567${at}`).join()}]`, {
    'content-type': 'application/json',
  }),
  'short texts': request(Array.from({ length: 60_000 }, (_, at) => `x${at}`)),
  names: request({ a: 'a'.repeat(400_000), ...names(9_000) }),
  objects: request(Array.from({ length: 30_000 }, (_, at) => ({ [`k${at}`]: 1 }))),
  batch: request(Array.from({ length: 15_000 }, () => ({ jsonrpc: '2.0', method: 'tools/call' }))),
  'wide text': request({ a: 'éΣ'.repeat(100_000) }),
}

const condition = (field: string, operator: string, value: string, more: object = {}) => ({
  field,
  operator,
  value,
  ...more,
})
const heavyConditions = [
  condition('input.body[*]', 'matches', '(foo|bar)\\d+x'),
  condition('input.body[*]', 'like', '*a*b*c'),
  condition('input.body[*]', 'contains', 'needle', { ignoreCase: true }),
  condition('input.body[*]', 'gt', '-1', { quantifier: 'all' }),
  condition('input.body[*]', 'in', JSON.stringify(Array.from({ length: 999 }, (_, at) => at + 1_000_000))),
  condition('input.body', 'hasAll', JSON.stringify(Array.from({ length: 999 }, (_, at) => at * 60))),
  condition('input.body[*].a', 'exists', 'true'),
  condition('mcp.tool', 'eq', 'x'),
  condition('mcp.method', 'notIn', 'a,b'),
  condition('input.body.a', 'like', `*${'a'.repeat(60)}b*`),
  condition('input.body.a', 'contains', `${'a'.repeat(500)}b${'a'.repeat(500)}`),
  condition('input.body.a', 'contains', 'ΣxΣ', { ignoreCase: true }),
  condition('input.bodyText', 'contains', 'NEEDLE', { ignoreCase: true }),
]

/** Steps of one turn, and of the largest piece of work that cannot be divided: making a set of a long list. */
const mostStepsOfTurn = 65_536 + 262_144

t.test('no turn takes more than its steps, whatever rules and bodies are, and the decision is the same', async t => {
  for (const [name, given] of Object.entries(heavyBodies)) {
    const rulebook = rulesOn(...heavyConditions)
    const { decision, turns, steps } = inTurns(rulebook, given)
    t.strictSame(decision, atOnce(rulebook, given), name)
    t.ok(turns > 1 && steps < mostStepsOfTurn, `${name}: ${turns} turns, at most ${steps} steps in one`)
  }
})

t.test('the documents of a GraphQL batch are read in turns', async t => {
  const given = request(Array.from({ length: 50 }, () => ({ query: `{${' a'.repeat(4_990)}}` })))
  const rulebook = rulesOn(condition('graphql.fields', 'eq', 'x'))
  const { decision, turns, steps } = inTurns(rulebook, given)
  t.strictSame(decision, atOnce(rulebook, given))
  t.ok(turns > 20 && steps < mostStepsOfTurn, `${turns} turns, at most ${steps} steps in one`)
})

t.test('the elements of a list are looked at for messages and for requests in turns', async t => {
  const given = request(Array.from({ length: 60_000 }, () => ({})))
  const turnsOf = (field: string) => {
    const rules = [{ name: 'r', effect: 'Deny', conditions: [condition(field, 'eq', 'x')] }]
    const rulebook = rulebookOf({ name: 'p', default: 'Allow', rules })
    const { decision, turns } = inTurns(rulebook, given)
    t.strictSame(decision, atOnce(rulebook, given), field)
    return turns
  }
  const before = turnsOf('input.body.none')
  for (const field of ['mcp.method', 'mcp.tool', 'graphql.operation']) {
    const turns = turnsOf(field)
    t.ok(turns > before + 20, `${field}: ${before}, then ${turns} turns`)
  }
})

t.test('what a condition takes is counted: with it there are more turns', async t => {
  const numbers = request(Array.from({ length: 99_000 }, () => 7))
  const texts = request({ a: 'ab'.repeat(400_000) })
  const rows: [object, DescribedRequest][] = [
    [condition('input.body[*]', 'gt', '6', { quantifier: 'all' }), numbers],
    [condition('input.body', 'in', '8,9'), numbers],
    [condition('input.body', 'hasAll', '7,8'), numbers],
    [condition('input.body[*].a', 'exists', 'true'), numbers],
    [condition('input.body[*]', 'matches', '8'), numbers],
    [condition('input.body.a', 'contains', `${'a'.repeat(99)}b`), texts],
    [condition('input.body.a', 'contains', 'éa', { ignoreCase: true }), request({ a: 'éb'.repeat(100_000) })],
    [condition('input.body[*]', 'like', '*abc'), request(list('ab'.repeat(400), 900))],
  ]
  for (const [one, given] of rows) {
    const { turns: before } = inTurns(rulesOn(condition('input.body.none', 'exists', 'true')), given)
    const { turns } = inTurns(rulesOn(one), given)
    t.ok(turns > before, `${JSON.stringify(one)}: ${before}, then ${turns} turns`)
  }
})

t.test('explanations are made in turns as well', async t => {
  for (const name of ['numbers', 'wide text']) {
    const rules = heavyConditions.map((one, at) => ({ name: `r${at}`, effect: 'Deny', conditions: [one] }))
    const rulebook = rulebookOf({ name: 'p', default: 'Allow', rules })
    const body = Buffer.from((heavyBodies[name] as DescribedRequest).body.bytes).toString()
    const given = { request: { url: 'https://a.example/', body, headers: { 'content-type': 'application/json' } } }
    const open = openExplanation(rulebook, given, 0) as OpenExplanation
    let explanation = open.takeTurn()
    t.equal(explanation, undefined, `${name} takes more than a turn`)
    for (let turns = 0; explanation === undefined && turns < 1_000; turns++) explanation = open.takeTurn()
    t.strictSame(explanation, explainDescription(rulebook, given, 0), name)
  }
})

t.test('short bodies are decided in the first turn', async t => {
  const rulebook = rulesOn(detects('input.bodyText'), detects('input.bodyText', 'any', 'pii'))
  t.equal(inTurns(rulebook, request(spaced.slice(0, 16_384))).turns, 1)
})

t.test('a search that is done is not done again for the next rule, nor for the record', async t => {
  const one = inTurns(rulesOn(detects('input.bodyText', 'any', 'pii')), request(spaced))
  const many = inTurns(
    rulesOn(...Array.from({ length: 9 }, () => detects('input.bodyText', 'any', 'pii'))),
    request(spaced),
  )
  t.ok(many.turns <= one.turns + 1, `${one.turns}, then ${many.turns} turns`)
})

t.test('what fails in a later turn denies', async t => {
  const rulebook = rulesOn(detects('input.bodyText'))
  const given = request(spaced)
  const need = decideHead(rulebook, given.head)
  if (!('need' in need)) throw new Error('decided without the body')
  const open = new BodyDecision(rulebook, given.head, need, given.body)
  t.equal(open.takeTurn(), undefined)
  const rule = rulebook.policy?.rules[0] as unknown as { tests: unknown[] }
  rule.tests[0] = () => {
    throw new TypeError('broken')
  }
  let decision = open.takeTurn()
  for (let turns = 0; decision === undefined && turns < 100; turns++) decision = open.takeTurn()
  t.match(decision, { decision: 'Deny', source: 'error', phase: 'body' })
})

t.test('nothing of a request or its body is alive once it is decided', async t => {
  // So many rules that they are run as a program, which serves all requests.
  const rules = Array.from({ length: 300 }, (_, at) => ({
    name: `r${at}`,
    effect: 'Deny',
    conditions: [
      { field: 'input.method', operator: 'eq', value: 'POST' },
      { field: 'input.body.a', operator: 'eq', value: `${at}` },
    ],
  }))
  const compiled = compilePolicySync(policyOf({ name: 'p', default: 'Allow', rules }))
  const rulebook = rulebookOfCompiled(compiled, { risk: defaultRisk, shadows: [compiled] })
  const held: WeakRef<object>[] = []
  const decisions: Decision[] = []
  const decideOne = () => {
    const given = request({ a: list('x', 10_000) })
    held.push(new WeakRef(given.head), new WeakRef(given.body.bytes))
    decisions.push(inTurns(rulebook, given).decision)
  }
  decideOne()
  // V8 may still be compiling what ran, in a thread that holds on to its values.
  for (let round = 0; round < 100 && held.some(reference => reference.deref() !== undefined); round++) {
    await new Promise(resolve => setImmediate(resolve))
    collect()
  }
  t.strictSame(
    held.map(reference => reference.deref()),
    [undefined, undefined],
  )
  t.equal(decisions.length, 1)
})
