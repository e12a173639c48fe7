/** Policies from counted shapes. */
import t from 'tap'
import { parse } from 'yaml'
import { tryProposal } from '../../src/policies/proposal.ts'
import { makePolicy } from '../../src/policies/propose.ts'
import { learn } from '../../src/policy/propose/learn.ts'
import type { ShapeOutcome } from '../../src/policy/propose/outcome.ts'
import type { ShapeCount } from '../../src/storage/store.ts'

const agentId = '00000000-0000-4000-8000-000000000001'
const day = 86_400_000
const terms = { name: 'p', since: 0, until: 9 * day, isExact: false, promotes: false, unseen: 'Hitl' } as const

function counted(path: readonly unknown[], outcome: Partial<ShapeOutcome> = {}, over: Partial<ShapeCount> = {}) {
  const shape = {
    ...{ method: 'GET', origin: 'https://a.example', path, unfit: null },
    ...{ facts: [['input.bodyInfo.size', '0']], names: [['input.queryString', []]] },
  }
  const usual = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null }
  const texts = { shape: JSON.stringify(shape), outcome: JSON.stringify({ ...usual, ...outcome }) }
  const times = { count: 4, firstAt: 0, lastAt: 2 * day, days: [0, 1] }
  return { agentId, digest: JSON.stringify(path), ...texts, values: [], fields: {}, ...times, ...over }
}

const make = (shapes: readonly ShapeCount[], before?: object, over: Partial<typeof terms> = {}) =>
  makePolicy([{ shapes, incompleteSince: null }], { ...terms, ...over }, {}, before)

t.test('what teaches nothing is listed by cause, the most frequent first', t => {
  const made = make([
    counted(['a']),
    counted(['b'], { status: 5 }),
    counted(['c'], { effect: 'Deny', status: 4 }),
    counted(['d'], { effect: 'Hitl', status: 0 }, { count: 9 }),
    counted(['late'], {}, { firstAt: 10 * day, lastAt: 10 * day }),
  ])
  t.match(made, {
    used: 4,
    allowed: 4,
    leftOut: [
      { cause: 'held, and not approved', count: 9 },
      { cause: 'denied by a policy', count: 4 },
      { cause: 'not answered with 2xx or 3xx', count: 4 },
    ],
  })
  t.end()
})

t.test('the tests of a proposal have its requests, and misses that it does not allow', t => {
  const both = [counted(['v1', 'items']), counted(['v1', 'itemsx'])]
  const made = make(both)
  if (!('tests' in made)) throw new TypeError('it is refused')
  const { policy, tests } = parse(made.tests)
  t.equal(policy, 'p')
  const named = (name: string) => tests.find((one: { name: string }) => one.name === name)?.expect.decision
  t.strictSame([named('recorded 1'), named('nearly 1, 1'), named('recorded 2')], ['Allow', 'Hitl', 'Allow'])
  t.equal(named('nearly 1, 2'), undefined, 'the sibling is allowed, since it was recorded')
  t.end()
})

t.test('too many shapes, and a policy whose priorities cannot be doubled, are refused', t => {
  const one = counted(['a'])
  t.match(make(Array.from({ length: 5_001 }, () => one)), { refusal: 'invalid_body', detail: /more than 5000 shapes/ })
  const high = [{ name: 'r', effect: 'Allow', priority: Number.MAX_SAFE_INTEGER, conditions: [] }]
  t.match(make([one], { name: 'p', default: 'Deny', rules: high }), { refusal: 'wrong_state' })
  t.end()
})

t.test('a recorded request counts for the rule that decided it, while that allows', t => {
  const host = [{ field: 'input.host', operator: 'eq', value: 'a.example' }]
  const long = 'a-very-long-name-'.repeat(7)
  const rules = [
    { name: long, effect: 'Allow', conditions: host },
    { name: 'held', effect: 'Hitl', conditions: [{ field: 'input.host', operator: 'eq', value: 'b.example' }] },
  ]
  const shapes = [
    counted(['mine'], { rule: long }),
    counted(['of-another'], { policy: 'q', rule: long }),
    counted(['held'], { rule: 'held' }),
    counted(['default']),
  ]
  const named = (policy: object) => {
    const made = make(shapes, policy)
    if (!('proposal' in made)) throw new TypeError('it is refused')
    return made.proposal.document.rules.map(({ name, conditions }) => [
      name,
      JSON.stringify(conditions).match(/\["\/[^"]*"/)?.[0],
    ])
  }
  const narrowed = [
    ['rule-seen', '["/mine"'],
    ['rule-not-seen', undefined],
    ['held', undefined],
  ]
  t.strictSame(named({ name: 'p', default: 'Deny', rules }), narrowed)
  t.strictSame(named({ name: 'p', default: 'Allow', rules }), [...narrowed, ['default-seen', '["/default"']])
  t.end()
})

t.test('a proposal that is not valid, and one that denies what it was made from, are faults', t => {
  const observed = { recorded: [], eligible: [] }
  const { document, ...rest } = learn('p', observed, terms)
  t.throws(() => tryProposal({ ...rest, document: { ...document, name: '' } }, observed, {}), /not valid: name/)
  t.end()
})
