import t from 'tap'
import { driftOf } from '../../src/policies/drift.ts'
import type { ShapeOutcome } from '../../src/policy/propose/outcome.ts'
import type { ShapeCount } from '../../src/storage/store.ts'

const day = 86_400_000
const now = 100 * day

const counted = (path: string, over: Partial<ShapeOutcome>, more: Partial<ShapeCount> = {}): ShapeCount => {
  const shape = { method: 'GET', origin: 'https://a.example', path: ['v1', path, ['int', 0]], facts: [], names: [] }
  const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null, ...over }
  const texts = { shape: JSON.stringify({ ...shape, unfit: null }), outcome: JSON.stringify(outcome) }
  return {
    agentId: 'a1',
    digest: path,
    ...texts,
    values: [],
    fields: {},
    count: 5,
    firstAt: 0,
    lastAt: now,
    days: [0],
    ...more,
  }
}

const rule = (name: string, effect: string) => ({ name, effect, priority: 0, conditions: [] })
const policy = {
  ...{ name: 'p', description: '', owner: '', default: 'Deny' },
  rules: [
    rule('reads', 'Allow'),
    rule('writes', 'Hitl'),
    rule('mixed', 'Hitl'),
    rule('old', 'Deny'),
    rule('late', 'Deny'),
  ],
}

t.test('rules without use, always approved ones, and requests that no rule covers are named', async t => {
  const drift = driftOf(
    policy,
    [
      counted('items', { rule: 'reads' }),
      counted('gone', { rule: 'reads' }, { lastAt: now - 15 * day }),
      counted('rare', { rule: 'reads' }, { lastAt: now - 15 * day, count: 2 }),
      ...['a2', 'a3'].map(agentId => counted('items', { rule: 'reads' }, { agentId })),
      counted('notes', { rule: 'writes', effect: 'Hitl', verdict: 'approved' }, { count: 10 }),
      counted('notes', { rule: 'mixed', effect: 'Hitl', verdict: 'approved' }, { count: 10 }),
      counted('notes', { rule: 'mixed', effect: 'Hitl', verdict: 'denied' }, { count: 1 }),
      counted('other', { rule: null, effect: 'Deny' }, { count: 7 }),
      counted('rest', { rule: 'reads-not-seen', effect: 'Hitl' }, { count: 8 }),
      counted('of another policy', { policy: 'q' }),
    ],
    [
      ...['reads', 'writes', 'mixed', 'late'].map(rule => ({ rule, count: 3, lastDay: 90 })),
      { rule: null, count: 9, lastDay: 99 },
    ],
    now,
  )
  t.strictSame(drift.unused, ['old'], 'a rule whose requests were not recorded is used')
  t.strictSame(drift.alwaysApproved, ['writes'])
  t.strictSame(drift.ofOneAgent, ['writes', 'mixed'])
  t.strictSame(
    drift.uncovered.map(({ url, count }) => [url, count]),
    [
      ['https://a.example/v1/rest/{int}', 8],
      ['https://a.example/v1/other/{int}', 7],
    ],
  )
  t.match(drift.stopped, [{ url: 'https://a.example/v1/gone/{int}', lastAt: now - 15 * day }])
  t.equal(drift.stopped.length, 1)
  t.match(drift.rules[0], { rule: 'reads', count: 22, agents: 3, lastAt: now })
  t.match(drift.rules.at(-1), { rule: null, effect: 'Deny', count: 7, hits: 9 })
})

t.test('of an agent alone no rule is named as that of one agent', async t => {
  t.strictSame(driftOf(policy, [counted('items', { rule: 'reads' })], [], now).ofOneAgent, [])
})
