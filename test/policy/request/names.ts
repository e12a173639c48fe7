/** Names that some reader takes for one another. Threat T24 of SECURITY.md. */
import fc from 'fast-check'
import t from 'tap'
import { foldName, memberOf, readsLike } from '../../../src/policy/request/names.ts'
import { EvaluationTurns } from '../../../src/policy/turns/evaluation.ts'
import { missing, unreadable } from '../../../src/policy/values/truth.ts'
import { decision, rulebookOf, truthOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

t.test('characters fold as Unicode says, and keep their length', async t => {
  const cased: string[] = []
  const groups = new Map<string, string[]>()
  for (let code = 0; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const char = String.fromCodePoint(code)
    const folded = foldName(char)
    if (folded.length !== char.length) t.fail(`U+${code.toString(16)} changes its length`)
    if (folded === char && char.toUpperCase() === char) continue
    cased.push(char)
    groups.set(folded, [...(groups.get(folded) ?? []), char])
  }
  const text = cased.join('\n')
  for (const char of cased) {
    // Regular expressions fold as CaseFolding.txt says (ECMA-262, Canonicalize).
    const alike = text.match(new RegExp(`\\u{${char.codePointAt(0)?.toString(16)}}`, 'giu')) ?? []
    const apart = alike.find(other => foldName(other) !== foldName(char))
    if (apart !== undefined) t.fail(`${char} and ${apart}`)
  }
  t.strictSame(groups.get('i'), ['I', 'i', '\u0130', '\u0131'])
  t.strictSame(groups.get('k'), ['K', 'k', '\u212a'])
})

const unit = fc.constantFrom(
  'a',
  'A',
  '@',
  '`',
  'k',
  '\u212a',
  's',
  '\u017f',
  'i',
  '\u0131',
  '\u0130',
  '\u00df',
  '\u1e9e',
  '1',
)
const wide = fc.constantFrom(
  '\u00e9',
  '\u00c9',
  '\u{10400}',
  '\u{10428}',
  '\u{10401}',
  '\ud801',
  '\udc00',
  '\ufb05',
  '\ufb06',
)

t.test('names read alike when they differ and fold to the same', async t => {
  const name = fc.array(fc.oneof(unit, wide), { maxLength: 4 }).map(units => units.join(''))
  fc.assert(
    fc.property(name, name, (one, other) => {
      return readsLike(one, other) === (one !== other && foldName(one) === foldName(other))
    }),
    // Halves of characters, one of them alone, that fold alike where they are compared but not as a whole.
    { numRuns: runs(40_000), examples: [['\ud801\udc28\udc00', '\ud801\ud801\udc00']] },
  )
  t.pass('holds')
})

t.test('a member is read when no other name of the object reads like it', async t => {
  t.equal(memberOf({ id: 1, Amount: 2, amount_: 3 }, 'id'), 1)
  for (const object of [{ id: 1, ID: 2 }, { Id: 1 }, { '\u0131d': 1, other: 2 }])
    t.equal(memberOf(object, 'id'), unreadable)
  for (const value of [{ i_d: 1 }, [], 'id', null, missing]) t.equal(memberOf(value, 'id'), missing)
  t.equal(memberOf(unreadable, 'id'), unreadable)
  t.equal(memberOf(JSON.parse('{"__proto__":1}'), '__proto__'), 1)
  t.equal(memberOf({}, 'toString'), missing)
})

t.test('a large object is listed once, and comparing its names is charged', async t => {
  const object = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, at]))
  const turns = new EvaluationTurns()
  turns.take(() => memberOf(object, 'k5'))
  const first = turns.steps
  t.ok(first > 10_000, String(first))
  turns.take(() => memberOf(object, 'k6'))
  t.ok(turns.steps > 1_000 && turns.steps < first / 2, String(turns.steps))
})

const post = (body: unknown) => ({ request: { method: 'POST', url: 'https://a.example/?Page=1&size=2', body } })
const is = (field: string, value: unknown) => ({ field, operator: 'eq', value })

t.test('only conditions that go through the names of an object are in doubt', async t => {
  const body = { id: 1, ID: 2, order: { sum: 5 }, list: [{ sum: 5 }, { Sum: 5 }] }
  t.equal(truthOf(is('input.body.order.sum', 5), post(body)), 'T')
  t.equal(truthOf(is('input.body.id', 1), post(body)), 'E')
  t.equal(truthOf(is('input.body.Id', 1), post(body)), 'E')
  t.equal(truthOf(is('input.body.@size', 4), post(body)), 'T')
  t.equal(truthOf({ field: 'input.bodyText', operator: 'contains', value: 'ID' }, post(body)), 'T')
  t.equal(truthOf(is('input.body.list[*].sum', 5), post(body)), 'T', 'one of several is enough')
  t.equal(truthOf(is('input.body.list[*].sum', 6), post(body)), 'E')
  t.equal(truthOf(is('input.query.page', 1), post(body)), 'E')
  t.equal(truthOf(is('input.query.size', 2), post(body)), 'T')
})

t.test('the names of an object are in doubt where letter case decides', async t => {
  const only = (value: unknown, rest: object = {}) => ({ field: 'input.body.@keys', operator: 'in', value, ...rest })
  const all = { quantifier: 'all' }
  t.equal(truthOf(only(['id', 'sum'], all), post({ id: 1, sum: 2 })), 'T')
  t.equal(truthOf(only(['id', 'sum'], all), post({ id: 1 })), 'T')
  t.equal(truthOf(only(['id', 'sum'], all), post({ id: 1, sum: 2, more: 3 })), 'F')
  t.equal(truthOf(only(['id', 'sum'], all), post({ id: 1, Sum: 2 })), 'E')
  t.equal(truthOf(only(['id', 'sum'], all), post({ id: 1, \u017fum: 2 })), 'E', 'Go reads it as sum')
  t.equal(truthOf(only(['id'], all), post({})), 'F', 'no name at all')
  t.equal(truthOf(only(['id'], all), post([{ id: 1 }])), 'F', 'no object')
  t.equal(truthOf(only(['admin']), post({ id: 1, Admin: true })), 'E', 'so that a Deny rule applies')
  t.equal(truthOf({ ...only(['ID'], all), ignoreCase: true }, post({ id: 1 })), 'T')
  t.equal(truthOf({ field: 'input.body.@keys', operator: 'hasAll', value: ['id'] }, post({ id: 1, x: 2 })), 'T')
})

t.test('the names of a form are in doubt where servers divide it in different ways', async t => {
  const only = { field: 'input.body.@keys', operator: 'in', value: ['a', 'b'], quantifier: 'all' }
  const form = (body: string) => ({
    request: {
      ...{ method: 'POST', url: 'https://a.example/', body },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    },
  })
  t.equal(truthOf(only, form('a=1&b=2&a=3')), 'T')
  t.equal(truthOf(only, form('a=1&c=2')), 'F')
  t.equal(truthOf(only, form('a=1;c=2')), 'E')
})

t.test('names in claims and tags of the gateway keep their letter case', async t => {
  const agent = { claims: { Role: 'a', role: 'b' }, tags: { Team: 'x', team: 'y' } }
  t.equal(truthOf(is('agent.claims.role', 'b'), { request: { url: 'https://a.example/' }, agent }), 'T')
  t.equal(truthOf(is('agent.tags.team', 'y'), { request: { url: 'https://a.example/' }, agent }), 'T')
})

t.test('the reason says why', async t => {
  const rulebook = rulebookOf({
    name: 'p',
    default: 'Allow',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.amount', operator: 'gt', value: 100 }] }],
  })
  t.match(decision(rulebook, post({ amount: 1, Amount: 100_000 })), {
    decision: 'Deny',
    reason: /input\.body\.amount could not be evaluated \(servers may read its names in different ways\)/,
  })
})
