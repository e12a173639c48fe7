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
  ]
  for (const request of requests) t.equal(sampled(request), undefined, JSON.stringify(request))
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
