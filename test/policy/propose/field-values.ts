/** Values of fields of bodies: which are kept, and what rules are made of them. Threat T80. */
import t from 'tap'
import { parse } from 'yaml'
import { proposalYaml } from '../../../src/policies/proposal.ts'
import { makePolicy } from '../../../src/policies/propose.ts'
import { simulate } from '../../../src/policies/simulate.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { walk } from '../../../src/policy/evaluation/walk.ts'
import { factsOf } from '../../../src/policy/lint/examined.ts'
import { type BodyValues, valuesOfBoth } from '../../../src/policy/propose/field-values.ts'
import { type KeptShape, keptOf } from '../../../src/policy/propose/kept.ts'
import { learn } from '../../../src/policy/propose/learn.ts'
import { readShape } from '../../../src/policy/propose/recorded.ts'
import { described, policyOf } from '../../fixtures/rulebook.ts'

const agent = { id: '00000000-0000-4000-8000-000000000001' }
const requestOf = (body: unknown, headers?: Readonly<Record<string, string>>) =>
  described({
    request: { method: 'POST', url: 'https://a.example/v1/refunds', body, ...(headers && { headers }) },
    agent,
  })

/** What is known after requests with these bodies. */
function kept(...bodies: readonly unknown[]): { readonly shape: KeptShape; readonly fields: BodyValues } {
  const all = bodies.map(body => keptOf(requestOf(body), true)!)
  const fields = all.map(one => one.fields).reduce<BodyValues | undefined>(valuesOfBoth, undefined)
  return { shape: all[0]!.shape, fields: fields ?? {} }
}

const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null } as const
const dayMs = 86_400_000
const counted = ({ shape, fields }: ReturnType<typeof kept>, count = 20, days: readonly number[] = [0, 1]) =>
  ({ ...{ agentId: agent.id, shape, outcome, values: [], fields, count, days }, firstAt: 0, lastAt: dayMs }) as const

const proposalOf = (...all: readonly ReturnType<typeof counted>[]) => {
  const requests = all.flatMap(one => {
    const read = readShape(one, false)
    return 'unfit' in read ? [] : read.requests
  })
  const options = { isExact: false, promotes: false, unseen: 'Deny' } as const
  return learn('p', { recorded: requests, eligible: requests }, options)
}

t.test('of a field a few plain texts are kept, or how large numbers were', async t => {
  const bodies = [
    { currency: 'eur', amount: 100, live: false, list: [1] },
    { currency: 'usd', amount: 5_000, live: false, list: [1] },
  ]
  t.strictSame(kept(...bodies).fields, {
    'input.body.currency': { texts: ['eur', 'usd'] },
    'input.body.amount': { min: 100, max: 5_000 },
    'input.body.live': { texts: ['false'] },
  })
  const args = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: { mode: 'fast' } } }
  t.strictSame(kept(args).fields, { 'input.body.params.arguments.mode': { texts: ['fast'] } })
  t.strictSame(kept({ jsonrpc: '2.0', id: 1, method: 'ping' }).fields, {}, 'of a message only what a tool gets')
  t.strictSame(kept({ model: 'm', messages: [], stream: true }).fields, { 'input.body.stream': { texts: ['true'] } })
  const form = requestOf('unit=kg&n=5&n2=a&n2=b', { 'content-type': 'application/x-www-form-urlencoded' })
  t.strictSame(keptOf(form, true)?.fields, {
    'input.body.unit': { texts: ['kg'] },
    'input.body.n': { min: 5, max: 5 },
  })
})

t.test('a ninth text, another type and an unfit text drop the field for good', async t => {
  const nine = Array.from({ length: 9 }, (_, at) => ({ a: `t${at}` }))
  t.strictSame(kept(...nine).fields, {})
  t.strictSame(kept(...nine, { a: 't1' }).fields, {}, 'for good')
  t.strictSame(kept(...nine.slice(1)).fields, { 'input.body.a': { texts: nine.slice(1).map(({ a }) => a) } })
  const random = 'cus_9dc041d1b245'
  for (const other of [5, 'two words', '', 'x'.repeat(65), null, ['x'], { x: 1 }, 'zwölf', 'a\nb: c', random]) {
    t.strictSame(kept({ a: 'x' }, { a: other }, { a: 'x' }).fields, {}, JSON.stringify(other))
  }
})

t.test('nothing secret or personal is kept: by the name of the field, by detectors, and long numbers', async t => {
  const secret = `ghp_${'aB3'.repeat(12)}`
  const body = {
    ...{
      password: 'hunter2',
      api_key: 'x',
      pin: 1234,
      note: secret,
      mail: 'jane@shop.example',
      iban: 'DE89370400440532013000',
    },
    ...{ card: 4_111_111_111_111_111, order: 12_345_678_901_234, 'odd name': 'x', '#': 'x', ['n'.repeat(65)]: 'x' },
  }
  t.strictSame(keptOf(requestOf(body), true)?.fields ?? {}, {})
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const named = [requestOf({ name: 'password', value: 'hunter2' }), requestOf('field=pin&value=1234', form)]
  const inText = ['password:hunter2', 'reset-token/abc12', 'x/password/hunter2'].map(a => requestOf({ a }))
  for (const one of [...named, ...inText]) t.strictSame(keptOf(one, true)?.fields, {})
  t.strictSame(keptOf(requestOf({ a: 'x' }), false)?.fields, {}, 'of a body that is not known')
})

t.test('nothing is kept of what a person answers or is called by, of telephones and of random texts', async t => {
  for (const name of ['secretAnswer', 'nonce', 'mfa', 'mfa_2', 'phone', 'HomePhone', 'date_of_birth', 'challenge1'])
    t.strictSame(kept({ [name]: 'blue' }).fields, {}, name)
  t.strictSame(kept({ mfa: 123_456 }).fields, {})
  const texts = [
    '555-123-4567',
    '0049.30.1234567',
    'aGVsbG8x',
    'YWJjZGVm',
    'Zm9vYmFy',
    'x9f3a2',
    'ab.Q7xTzP',
    'a1b2c3d4',
  ]
  for (const text of texts) t.strictSame(kept({ a: text }).fields, {}, text)
  const words = ['eur', 'EUR', 'sendMessage', 'GraphQL', 'sha256', 'us-east-1', 'in_progress', 'v2.1', 'utf-8', 'A4']
  for (const text of words) t.strictSame(kept({ a: text }).fields, { 'input.body.a': { texts: [text] } }, text)
  for (const name of ['answered', 'telegram', 'hashtag', 'mobility'])
    t.strictSame(Object.keys(kept({ [name]: 'blue' }).fields), [`input.body.${name}`], 'not by a part of a word')
})

t.test('of a body with many fields a few are looked at, so that one request holds up no other', async t => {
  const text = 'a.b.'.repeat(16)
  const large = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at.toString(36)}`, text]))
  t.strictSame(Object.keys(kept(large).fields).length, 32)
  const odd = { ...Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`k${at}`, 'two words'])), z: 'x' }
  t.strictSame(kept(odd).fields, {}, 'not looked at')
})

t.test('a field with few texts in 20 requests on 2 days has them in its rule; numbers are only told', async t => {
  const known = kept({ currency: 'eur', amount: 100 }, { currency: 'usd', amount: 5_000 })
  const proposal = proposalOf(counted(known))
  t.match(proposal.document.rules[0], { effect: 'Allow' })
  t.match(proposal.document.rules[0]?.conditions.at(-1), {
    field: 'input.body.currency',
    operator: 'in',
    value: ['eur', 'usd'],
  })
  const yaml = proposalYaml(proposal)
  t.match(yaml, /# seen 20 times .* by 1 agents; name 1: 100 to 5000/)
  t.strictSame(parse(yaml).rules.length, 1)
  const compiled = compilePolicySync(policyOf(proposal.document))
  const effectOf = (body: unknown) => walk(compiled, factsOf(requestOf(body))).effect
  t.equal(effectOf({ currency: 'usd', amount: 9e9 }), 'Allow')
  for (const near of [{ currency: 'chf', amount: 1 }, { currency: 'EUR', amount: 1 }, { amount: 1 }])
    t.equal(effectOf(near), 'Deny', JSON.stringify(near))
  for (const few of [counted(known, 19), counted(known, 20, [1])])
    t.notMatch(JSON.stringify(proposalOf(few).document), 'input.body.currency"')
})

t.test('no body makes proposals impossible: with many fields, and with names that differ in letter case alone', t => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`k${at}`, 'x']))
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: many } }
  const bodies: readonly (readonly [body: unknown, headers?: typeof form])[] = [
    ...[[many] as const, [message] as const, [{ A: 'x', a: 'y', b: 'z' }] as const, [{ a_b: 'x', aB: 'y' }] as const],
    ...[['a[]=x&a=y', form] as const, ['A=x&a=y', form] as const],
  ]
  for (const [body, headers] of bodies) {
    const { shape, fields } = keptOf(requestOf(body, headers), true)!
    const one = { ...counted({ shape, fields }), digest: 'd' }
    const texts = { shape: JSON.stringify(shape), outcome: JSON.stringify(outcome) }
    const shapes = [{ shapes: [{ ...one, ...texts }], incompleteSince: null }]
    const terms = { name: 'q', since: 0, until: 2 * dayMs, isExact: false, promotes: false, unseen: 'Deny' } as const
    t.match(makePolicy(shapes, terms, {}, undefined), { allowed: 20 }, JSON.stringify(body))
  }
  for (const name of ['µ', 'ſ', 'ı', 'ͅ']) t.equal(kept({ [name]: 1 }).shape.unfit, 'names with unusual letters', name)
  const { fields } = kept({ A: 'x', a: 'y', b: 'z' })
  t.strictSame(fields, { 'input.body.b': { texts: ['z'] } })
  t.end()
})

t.test('a rule that has no room for more conditions is not narrowed, and its requests are held', t => {
  const one = { ...counted(kept({ a: 'x' })), digest: 'd', shape: JSON.stringify(kept({ a: 'x' }).shape) }
  const shapes = [{ shapes: [{ ...one, outcome: JSON.stringify({ ...outcome, rule: 'r' }) }], incompleteSince: null }]
  const terms = { name: 'q', since: 0, until: 2 * dayMs, isExact: false, promotes: false, unseen: 'Deny' } as const
  for (const [count, allowed] of [
    [9, 20],
    [30, 0],
  ] as const) {
    const conditions = Array.from({ length: count }, (_, at) => {
      return { field: `input.headers.x-${at}`, operator: 'notExists', value: 'true' }
    })
    const before = { name: 'p', default: 'Deny', rules: [{ name: 'r', effect: 'Allow', conditions }] }
    t.match(makePolicy(shapes, terms, {}, before), { allowed, held: 20 - allowed })
  }
  t.end()
})

t.test('a list in place of a text, and a parameter that comes twice, have no value that was not seen', async t => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const bodies = [{ currency: 'eur' }, 'currency=eur'] as const
  for (const [at, headers] of [undefined, form].entries()) {
    const { shape, fields } = keptOf(requestOf(bodies[at], headers), true)!
    const compiled = compilePolicySync(policyOf(proposalOf(counted({ shape, fields })).document))
    const effectOf = (body: unknown) => walk(compiled, factsOf(requestOf(body, headers))).effect
    t.equal(effectOf(bodies[at]), 'Allow')
    for (const near of [{ currency: ['eur', 'chf'] }, { currency: [] }, 'currency=eur&currency=chf'])
      t.equal(effectOf(near), 'Deny', JSON.stringify(near))
  }
})

t.test('a rule that limits a field leaves requests without that field their own rule', async t => {
  const both = counted(kept({ currency: 'eur', amount: 100 }))
  const less = counted(kept({ amount: 100 }), 3)
  const { document } = proposalOf(both, less)
  const compiled = compilePolicySync(policyOf(document))
  for (const body of [{ currency: 'eur', amount: 1 }, { amount: 1 }])
    t.equal(walk(compiled, factsOf(requestOf(body))).effect, 'Allow', JSON.stringify(body))
  t.equal(proposalOf(counted(kept({ amount: 1, note: 'x y' })), less).document.rules.length, 1, 'else one is enough')
})

t.test('a change is tried on each combination of texts, and no value decides that is not kept', async t => {
  const known = kept({ a: 'x', b: 'x', n: 1 }, { a: 'y', b: 'y', n: 2 })
  const one = { ...counted(known), digest: 'd', shape: JSON.stringify(known.shape), outcome: JSON.stringify(outcome) }
  const before = { name: 'p', default: 'Allow', rules: [] }
  const tried = (...conditions: readonly object[]) => {
    const after = { ...before, rules: [{ name: 'r', effect: 'Deny', conditions }] }
    const { same, unknown, changes } = simulate([{ agent, shapes: [one], samples: [], before }], after, {})
    return [same, unknown, changes.length]
  }
  const isText = (field: string, value: string) => ({ field: `input.body.${field}`, operator: 'eq', value })
  t.strictSame(tried(isText('a', 'z')), [20, 0, 0], 'no request has it')
  t.strictSame(tried({ field: 'input.body.a', operator: 'in', value: 'x,y' }), [0, 0, 1], 'each has it')
  t.strictSame(tried(isText('a', 'x'), isText('b', 'y')), [0, 20, 0], 'which came together is not known')
  t.strictSame(tried({ field: 'input.body.n', operator: 'gt', value: '5' }), [0, 20, 0], 'numbers are not')
  t.strictSame(tried({ field: 'input.body.a', operator: 'typeIs', value: 'string' }), [0, 20, 0])
})
