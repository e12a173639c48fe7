import t from 'tap'
import { type Explanation, explainDescription } from '../../../src/policy/evaluation/explain.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { rulebookOf } from '../../fixtures/rulebook.ts'

const conditions = {
  post: { field: 'input.method', operator: 'eq', value: 'POST' },
  amount: { field: 'input.body.amount', operator: 'gt', value: '100' },
}

const document = {
  name: 'p',
  rules: [
    { name: 'dark', priority: 9, effect: 'Deny', mode: 'shadow', conditions: [] },
    { name: 'large', priority: 5, effect: 'Hitl', conditions: [conditions.post, { any: [conditions.amount] }] },
    { name: 'open', effect: 'Allow', conditions: [conditions.post] },
  ],
}

const given = (body: unknown, rest: Partial<RequestDescription> = {}): RequestDescription => ({
  request: { method: 'POST', url: 'https://a.example/x', body },
  ...rest,
})

function explain(policy: object, description: RequestDescription): Explanation {
  const explained = explainDescription(rulebookOf(policy), description, 0)
  if ('problem' in explained) throw new TypeError(explained.problem)
  return explained
}

t.test('every rule is explained in the order it is asked, with the decision', async t => {
  const { result, rules } = explain(document, given({ amount: 250 }))
  t.match(result, { decision: 'Hitl', rule: 'large' })
  t.strictSame(rules, [
    { rule: 'dark', effect: 'Deny', priority: 9, mode: 'shadow', value: 'true', matches: true, conditions: [] },
    {
      ...{ rule: 'large', effect: 'Hitl', priority: 5, mode: 'enforce', value: 'true', matches: true },
      conditions: [
        { condition: 'input.method eq "POST"', value: 'true', actual: 'POST' },
        {
          condition: 'any(input.body.amount gt "100")',
          value: 'true',
          inner: [{ condition: 'input.body.amount gt "100"', value: 'true', actual: 250 }],
        },
      ],
    },
    {
      ...{ rule: 'open', effect: 'Allow', priority: 0, mode: 'enforce', value: 'true', matches: true },
      conditions: [{ condition: 'input.method eq "POST"', value: 'true', actual: 'POST' }],
    },
  ])
})

t.test('at the head, what waits for the body is unknown', async t => {
  const { result, rules } = explain(document, given({ amount: 250 }, { phase: 'head' }))
  t.strictSame(result, { decision: null, need: 'body', pending: ['large'], otherwise: 'open' })
  t.match(rules[1], { value: 'unknown', matches: false, conditions: [{}, { inner: [{ actual: '(not known yet)' }] }] })
})

t.test('what cannot be evaluated is unreadable, and matches as onUnreadable says', async t => {
  const { rules } = explain(document, given({ amount: {} }))
  t.match(rules[1], { value: 'unreadable', matches: true })
  const truncated = { request: { ...given({ amount: 1 }).request, bodyLimit: 3 } }
  t.match(explain(document, truncated).rules[1], { conditions: [{}, { inner: [{ actual: '(unreadable)' }] }] })
  t.match(explain(document, given({})).rules[1], {
    value: 'false',
    conditions: [{}, { inner: [{ actual: '(missing)' }] }],
  })
})

t.test('a score and threshold may be given', async t => {
  t.match(explain(document, given({}, { risk: 0.9 })).result, {
    decision: 'Hitl',
    source: 'risk',
    risk: { score: 0.9, threshold: 0.8 },
  })
  t.match(explain(document, given({}, { risk: 0.9, riskThreshold: 0.95 })).result, { decision: 'Allow' })
})

t.test('a policy that is not there is explained without rules', async t => {
  const rulebook = rulebookOf(document, { policy: undefined })
  t.match(explainDescription(rulebook, given({}), 0), { result: { source: 'policy-missing' }, rules: [] })
})

t.test('a description that is not a request is answered with what is wrong with it', async t => {
  const rulebook = rulebookOf(document)
  t.match(explainDescription(rulebook, { request: { url: '/x' } }, 0), { part: 'target', problem: /must begin/ })
  t.match(explainDescription(rulebook, { request: { url: 'ftp://a.example/' } }, 0), { part: 'target' })
  t.match(explainDescription(rulebook, { ...given({}), time: 'noon' }, 0), { part: 'time', problem: /ISO 8601/ })
})

/** What is shown of the value of a field. */
function shown(field: string, request: object): unknown {
  const policy = { name: 'p', rules: [{ name: 'r', effect: 'Deny', conditions: [{ field, operator: 'exists' }] }] }
  return explain(policy, { request: { url: 'https://a.example/?token=t', ...request } }).rules[0]?.conditions[0]?.actual
}

t.test('actual values are redacted by name and by content, and cut', async t => {
  const body = (value: unknown, name = 'x') => ({ body: { [name]: value } })
  t.equal(shown('input.headers.x-api-key', { headers: { 'x-api-key': 'k' } }), '[redacted]')
  t.equal(
    shown('input.headers.authorization', { headers: { authorization: 'Bearer t' } }),
    '[redacted]'.replace('[redacted]', '(unreadable)'),
  )
  for (const name of ['password', 'clientSecret', 'access_token', 'api_key', 'credentials']) {
    t.equal(shown(`input.body.${name}`, body('v', name)), '[redacted]', name)
  }
  t.equal(shown('input.body["private-key"]', body('v', 'private-key')), '[redacted]')
  t.equal(shown('input.query.token', {}), '[redacted]')
  t.equal(shown('input.body.token[*]', body(['v'], 'token')), '[redacted]')
  t.equal(shown('input.body.x', body('key AKIAIOSFODNN7EXAMPLE')), '[redacted: aws-access-key]')
  t.equal(shown('input.body.x', body('jane@mail.example')), '[redacted: email]')
  t.equal(String(shown('input.body.x', body('y'.repeat(100)))).length, 64)
  t.strictSame(shown('input.body.x', body([1, 'jane@mail.example', {}, null, true, 6, 7])), [
    1,
    '[redacted: email]',
    '(object)',
    null,
    true,
    '2 more',
  ])
  t.equal(
    shown('input.body.x', { body: '{"x":9007199254740993}', headers: { 'content-type': 'application/json' } }),
    '9007199254740993',
  )
  t.equal(shown('input.bodyText', { body: 'a'.repeat(100) }), `${'a'.repeat(63)}…`)
})

t.test('a secret that begins in the shown part is found, wherever it ends', async t => {
  const text = (bodyText: string) => String(shown('input.bodyText', { body: bodyText }))
  const long = 'q7Rt'.repeat(2_500)
  for (const before of ['', 'see ', 'x'.repeat(63), 'words '.repeat(9)]) {
    for (const secret of [`https://user:${long}@a.example/`, `${long}@mail.example`, `eyJ${long}.${long}.${long}`]) {
      t.notMatch(text(before + secret), /q7Rt/, `${before}${secret.slice(0, 20)}`)
    }
    t.notMatch(text(`${before}-----BEGIN PRIVATE KEY-----\n${`${long.slice(0, 64)}\n`.repeat(99)}`), /q7Rt/)
  }
  t.equal(text(`some ${'words '.repeat(2_000)}`).length, 64, 'other long texts are shown')
})

t.test('the number of a card is redacted where it is a JSON number', async t => {
  const json = (body: string) => ({ body, headers: { 'content-type': 'application/json' } })
  t.equal(shown('input.body.x', json('{"x":4111111111111111}')), '[redacted: card-number]')
  t.equal(shown('input.body.x', json('{"x":378282246310005}')), '[redacted: card-number]')
  t.equal(shown('input.body.x', json('{"x":378282246310006}')), 378282246310006)
  t.equal(String(shown('input.body.x', json(`{"x":${'7'.repeat(5_000)}}`))), '[redacted: long-word]')
  t.equal(String(shown('input.body.x', json(`{"x":${'7'.repeat(500)}}`))).length, 64)
})

t.test('a header hidden by the gateway shows nothing but its presence', async t => {
  const policy = {
    name: 'p',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.headers.cookie', operator: 'exists' }] }],
  }
  const given = { request: { url: 'https://a.example/', headers: { cookie: 'session=1' } } }
  t.match(explain(policy, given).rules[0], { matches: true, conditions: [{ actual: '(unreadable)' }] })
})
