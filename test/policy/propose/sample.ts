/** Samples of whole requests: no secret is in one, and what was hidden is not known of it. Threat T80. */
import t from 'tap'
import { mark } from '../../../src/base/redact.ts'
import { knownBySample, requestOfSample, sampleOf } from '../../../src/policy/propose/sample.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { described, policyOf } from '../../fixtures/rulebook.ts'

type Request = Partial<RequestDescription['request']>

const url = 'https://api.example/v1/items?page=2'
const sampled = (request: Request) => sampleOf(described({ request: { url, method: 'POST', ...request } }))
const secret = `ghp_${'aB3'.repeat(12)}`
/** An object as JSON in a string, so many times. */
const nested = (inner: object, depth: number): object =>
  depth === 0 ? inner : { text: JSON.stringify(nested(inner, depth - 1)) }
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const json = { 'content-type': 'application/json' }

t.test('a request with a secret in its URL or body is no sample', t => {
  const requests: readonly Request[] = [
    { url: `https://api.example/v1/${secret}` },
    { url: `${url}&q=${secret}` },
    { url: `${url}&api_key=1` },
    { body: { text: `see ${secret}` } },
    { body: { [secret]: 1 } },
    { body: { password: 'x' } },
    { body: { login: { credentials: { user: 'a' } } } },
    { headers: json, body: '{"pass\\u0077ord":"x"}' },
    { headers: json, body: `{"text":"\\u0067${secret.slice(1)}"}` },
    { headers: form, body: 'user=a&client_secret=b' },
    { body: { token: 'x' } },
    { body: { a: [{ b: { c: { 'user.password': 1 } } }] } },
    { body: nested({ password: 'x' }, 1) },
    { body: nested({ password: 'x' }, 4) },
    { body: nested({ a: 1 }, 6) },
    { body: { fields: [{ name: 'password', value: 'x' }] } },
    { body: { text: `{"\\u0070assword":"x"}` } },
    { headers: json, body: '{"\\u0070assword":"x","password":1,"a":{"\\u0070in":1},"a":1}' },
    { headers: json, body: '{"a":' },
    { headers: json, body: `{a: 'b'}` },
    { body: { query: 'mutation { login(user: "a", password: "x") { id } }' } },
    { headers: { 'content-type': 'application/yaml' }, body: 'user: a\nlogin:\n  - password: x\n' },
    { headers: { 'content-type': 'text/plain' }, body: 'My password: x' },
    { headers: { 'content-type': 'text/xml' }, body: '<a:login><a:password>x</a:password></a:login>' },
    { headers: form, body: `a=${encodeURIComponent('{"login":{"password":"x"}}')}` },
    { url: `${url}&q=%${'25'.repeat(2_000)}` },
    { url: `${url}&q=%7B%22password%22:%22x%22%7D` },
    { url: `${url}&q=${encodeURIComponent(encodeURIComponent('{"password":"x"}'))}` },
    { url: `${url}&q=${encodeURIComponent(JSON.stringify(nested({ password: 'x' }, 2)))}` },
  ]
  for (const request of requests) t.equal(sampled(request), undefined, JSON.stringify(request))
  t.end()
})

t.test('T80: a request with more texts than are searched at once is no sample', t => {
  const requests: readonly Request[] = [
    { headers: form, body: '{;'.repeat(300) },
    { headers: form, body: `a=${encodeURIComponent('&{"a":1}'.repeat(300))}` },
    { body: Array.from({ length: 300 }, (_, n) => `[${n}]`) },
    { body: Array.from({ length: 8_000 }, (_, n) => `text ${n}`) },
    { headers: form, body: 'a=%41&'.repeat(9_000) },
  ]
  for (const request of requests) t.equal(sampled(request), undefined, JSON.stringify(request).slice(0, 100))
  t.ok(sampled({ body: Array.from({ length: 2_000 }, (_, n) => `text ${n}`) }))
  t.ok(sampled({ headers: form, body: 'a=1&'.repeat(9_000) }))
  t.end()
})

t.test('a body that is not UTF-8 is no sample', t => {
  const request = described({ request: { url, method: 'POST', headers: form, body: 'a=b' } })
  t.ok(sampleOf(request))
  const bytes = Buffer.from([0x61, 0x3d, 0xff])
  t.equal(sampleOf({ ...request, body: { ...request.body, bytes } }), undefined)
  t.end()
})

t.test('a request whose strings, parameters and JSON name no secret is a sample', t => {
  const body = { items: [{ name: 'size', value: '{"a":"[1]"}' }, { name: 'password' }], note: '100% sure; a=b', max: 1 }
  const requests: readonly Request[] = [
    { body },
    { body: nested({ a: 1 }, 4) },
    { headers: json, body: '' },
    { url: `${url}&q=%7B%22page%22:1%7D&r=%ff` },
    { headers: form, body: 'a=1&b=%5B1%5D&c=x+y' },
    { body: { query: 'query Find($a: String) { items(name: "x") { key password } }' } },
    { body: { text: 'The password is kept elsewhere. See http://a.example:80/ at 10:20: it says <b>no</b>.' } },
  ]
  for (const request of requests) t.ok(sampled(request), JSON.stringify(request))
  const headers = { 'X-Context': '{"a":"{\\"password\\":\\"x\\"}"}', 'X-Page': '{"page":1}' }
  t.match(sampled({ headers })?.rawHeaders, ['X-Context', mark, 'X-Page', '{"page":1}'])
  t.end()
})

t.test('header fields that are or may be secrets keep their names alone', t => {
  const headers = { Authorization: 'Bearer x', 'X-Note': secret, 'X-Ticket': 'T-1', Cookie: 'a=b', 'X-Api-Key': 'k' }
  const found = sampled({ headers, body: { amount: 5, max_tokens: 10 } })!
  t.strictSame(found.rawHeaders, [
    ...['Authorization', mark, 'X-Note', mark, 'X-Ticket', 'T-1', 'Cookie', mark, 'X-Api-Key', mark],
    ...['content-type', 'application/json'],
  ])
  t.strictSame(JSON.parse(Buffer.from(found.body).toString()), { amount: 5, max_tokens: 10 })
  t.end()
})

t.test('a sample answers what the request had, but not what was hidden or of its moment', t => {
  const found = sampled({ headers: { 'X-Ticket': 'T-1', Cookie: 'a=b' }, body: { a: 1 } })!
  const isKnown = knownBySample(found)
  const asks = (field: string, sample = isKnown) => {
    const conditions = [{ field, operator: 'exists', value: 'true' }]
    const [node] = policyOf({ name: 'p', rules: [{ name: 'r', effect: 'Deny', conditions }] }).rules[0]!.conditions
    return node !== undefined && 'field' in node && sample(node)
  }
  const known = ['input.body.a', 'input.query.page', 'input.headers.x-ticket', 'mcp.tool', 'llm.model', 'agent.tags.a']
  for (const field of [...known, 'time.hour', 'agent.id', 'input.bodyText']) t.ok(asks(field), field)
  const unknown = ['input.headers.cookie', 'input.headers.COOKIE', 'input.headers["x-ticket"]', 'input.clientIp']
  const ofMoment = ['input.destinationClass', 'agent.requestsLastMinute', 'agent.claims.sub', 'agent.trustScore']
  for (const field of [...unknown, ...ofMoment]) t.notOk(asks(field), field)
  t.ok(asks('input.headers["x-ticket"]', knownBySample(sampled({ headers: { 'X-Ticket': 'T-1' } })!)))
  t.end()
})

t.test('a sample is the request again', t => {
  const request = described({ request: { url, method: 'POST', headers: { 'X-A': '1' }, body: { a: 1 } } })
  const again = requestOfSample(sampleOf(request)!, { id: 'a1' }, 7)!
  const { url: same, method, rawHeaders, contentLength, now } = again.head
  t.strictSame([same, method, rawHeaders, contentLength, now], [url, 'POST', request.head.rawHeaders, 7, 7])
  t.strictSame(Buffer.from(again.body.bytes).toString(), '{"a":1}')
  t.equal(requestOfSample({ method: 'GET', url: 'no URL', rawHeaders: [], body: new Uint8Array(0) }, {}, 0), undefined)
  t.end()
})
