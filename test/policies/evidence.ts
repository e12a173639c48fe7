/** What was recorded of the requests of new rules, for the audit trail. */
import t from 'tap'
import { evidenceOf, namedAgents } from '../../src/policies/evidence.ts'
import { compileDocument } from '../../src/policies/propose.ts'
import { formatPolicy } from '../../src/policy/language/format.ts'
import { keptOf } from '../../src/policy/propose/kept.ts'
import type { ShapeCount } from '../../src/storage/store.ts'
import { described } from '../fixtures/rulebook.ts'

const id = '00000000-0000-4000-8000-000000000001'
const other = '00000000-0000-4000-8000-000000000002'
const url = 'https://api.example/v1/refunds'

function counted(digest: string, request: object, over: Partial<ShapeCount> = {}): ShapeCount {
  const { shape, values, fields } = keptOf(described({ request: { url, ...request } }), true)!
  const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null }
  const texts = { shape: JSON.stringify(shape), outcome: JSON.stringify(outcome) }
  return { agentId: id, digest, ...texts, values, fields, count: 1, firstAt: 0, lastAt: 0, days: [0], ...over }
}

const shapes = [
  counted('read', {}, { count: 4, firstAt: 5, lastAt: 90_000_000, days: [0, 1] }),
  counted('eur', { method: 'POST', body: { currency: 'eur' } }, { count: 2 }),
  counted('usd', { method: 'POST', body: { currency: 'usd', note: 'x' } }, { count: 9 }),
]
const ofAgent = { field: 'agent.id', operator: 'in', value: [id, other] }
const when = (field: string, value: string) => ({ field, operator: 'eq', value })
const policyOf = (...rules: readonly object[]) => formatPolicy(compileDocument({ name: 'p', rules }, {}).policy)
const rule = (name: string, ...conditions: readonly object[]) => ({ name, effect: 'Allow', conditions })
const subject = { agent: { id }, shapes, before: undefined }

t.test('nothing is said of rules with agents whose recording is not read', async t => {
  const ofNumber = (at: number) => `00000000-0000-4000-8000-0000000001${String(at).padStart(2, '0')}`
  const rules = Array.from({ length: 25 }, (_, at) => rule(`r${at}`, when('agent.id', ofNumber(at))))
  const policy = policyOf(...rules)
  const read = namedAgents(policy, undefined)
  t.equal(read.length, 20)
  const found = evidenceOf(
    policy,
    undefined,
    read.map(agent => ({ agent: { id: agent }, shapes: shapes.slice(0, 1), before: undefined })),
    {},
  )
  t.strictSame(
    found.map(({ rule: name, count }) => [name, count]),
    rules.slice(0, 20).map(({ name }) => [name, 4]),
  )
})

t.test('each new rule that names an agent has what was recorded of its requests', async t => {
  const known = rule('known', ofAgent)
  const policy = policyOf(
    known,
    rule('read', ofAgent, when('input.method', 'GET')),
    rule('in-euro', ofAgent, when('input.body.currency', 'eur')),
    rule('delete', ofAgent, when('input.method', 'DELETE')),
    rule('for-all', when('input.method', 'GET')),
    { ...rule('deny', ofAgent), effect: 'Deny' },
  )
  t.strictSame(namedAgents(policy, policyOf(known)), [id, other])
  t.strictSame(namedAgents(policyOf(known), policyOf(known)), [])
  const [start, end] = ['1970-01-01T00:00:00.005Z', '1970-01-02T01:00:00.000Z']
  const at = '1970-01-01T00:00:00.000Z'
  t.strictSame(evidenceOf(policy, policyOf(known), [subject], {}), [
    { rule: 'read', count: 4, days: 2, firstAt: start, lastAt: end, shapes: ['read'] },
    { rule: 'in-euro', count: 2, days: 1, firstAt: at, lastAt: at, shapes: ['eur'] },
    { rule: 'delete', count: 0, days: 0, firstAt: null, lastAt: null, shapes: [] },
  ])
  const [all] = evidenceOf(policyOf(known), undefined, [subject], {})
  t.match(all, { rule: 'known', count: 15, shapes: ['usd', 'read', 'eur'] })
})
