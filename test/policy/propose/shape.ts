/** Which requests have a shape, and the requests that are made from one. */
import t from 'tap'
import { exampleOf, requestOf } from '../../../src/policy/propose/example.ts'
import { missesOf } from '../../../src/policy/propose/misses.ts'
import { type Shape, shapeOf } from '../../../src/policy/propose/shape.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { described } from '../../fixtures/rulebook.ts'

type Request = RequestDescription['request']

const found = (request: Partial<Request>) =>
  shapeOf(described({ request: { url: 'https://api.example/v1/items', ...request } }))
const call = (method: string, params: unknown): Partial<Request> => ({
  method: 'POST',
  body: { jsonrpc: '2.0', id: 1, method, params },
})
const typed = (type: string, body: string): Partial<Request> => ({
  ...{ method: 'POST', body },
  headers: { 'content-type': type },
})

t.test('a request of which no rule can tell the kind has no shape, and the cause is named', t => {
  const causes: readonly (readonly [string | RegExp, Partial<Request>])[] = [
    ['a query with unusual names', { url: 'https://api.example/x?a;b=1' }],
    ['a query with unusual names', { url: 'https://api.example/x?%20%F0=1&=2' }],
    [
      'a query with unusual names',
      { url: `https://api.example/x?${Array.from({ length: 99 }, (_, at) => `nam${at}`).join('&')}` },
    ],
    ['a value that is too long', { method: 'POST', body: { ['x'.repeat(300)]: 1 } }],
    [/^a secret/, { url: 'https://api.example/AKIA/IOSFODNN7EXAMPLE/AKIAIOSFODNN7EXAMPLE' }],
    ['a body that is invalid', typed('application/json', '{"a":')],
    ['a body that is no object', typed('application/json', '[1]')],
    ['mcp.method is not one text', { method: 'POST', body: [call('tools/list', {}).body, call('ping', {}).body] }],
    [
      'input.body.params.arguments is no object',
      typed('application/json', '{"jsonrpc":"2.0","method":"x","params":{"arguments":{"a":1},"Arguments":{}}}'),
    ],
    [
      'malformed header fields of MCP',
      { ...call('tools/call', { name: 'x' }), headers: { 'mcp-method': 'a', 'Mcp-Method': 'b' } },
    ],
    [
      'a body with several content types',
      { method: 'POST', body: 'x', headers: { 'content-type': ['text/plain', 'text/html'] } },
    ],
  ]
  for (const [cause, request] of causes) t.match(found(request), { unfit: cause }, `${cause}`)
  t.end()
})

const whole: readonly Partial<Request>[] = [
  {},
  { url: 'https://api.example/v1/items?page=2&q=x' },
  { url: 'https://api.example/12/34', method: 'PATCH' },
  typed('text/plain', 'some text'),
  { method: 'POST', body: 'some text' },
  typed('application/octet-stream', '\u0000\u0001'),
  typed('application/x-www-form-urlencoded', 'b=1&a=2'),
  { method: 'POST', body: { b: { c: 1 }, a: [] } },
  { method: 'POST', body: {} },
  call('tools/list', undefined),
  call('tools/call', { name: 'search', arguments: { q: 'x', limit: 1 } }),
  call('resources/read', { uri: 'file:///x' }),
  { ...typed('application/json', '{"query":"query { me orders }"}'), url: 'https://api.example/graphql' },
]

t.test('the example of a shape has this shape', t => {
  for (const request of whole) {
    const shape = found(request)
    if ('unfit' in shape) throw new TypeError(shape.unfit)
    t.ok(requestOf(shape, { id: 'a1' }), JSON.stringify(exampleOf(shape)))
  }
  t.end()
})

t.test('a shape that no request has gives no example', t => {
  const shape = found({}) as Shape
  t.equal(requestOf({ ...shape, origin: 'https://api.example:x' }, { id: 'a1' }), undefined)
  const facts = [['input.bodyInfo.kind', 'json'] as const, ['input.contentType', 'text/plain'] as const]
  t.equal(requestOf({ ...shape, method: 'POST', facts }, { id: 'a1' }), undefined, 'without names')
  const form = [['input.bodyInfo.kind', 'form'] as const, ['input.contentType', null] as const]
  t.equal(requestOf({ ...shape, method: 'POST', facts: form, names: [] }, { id: 'a1' }), undefined)
  const named = [...facts, ['mcp.method', 'ping'] as const]
  t.match(exampleOf({ ...shape, method: 'POST', facts: named, names: [] }), { body: '{"jsonrpc":"2.0"}' })
  const graphql = [...facts, ['graphql.operation', 'query'] as const]
  t.match(exampleOf({ ...shape, method: 'POST', facts: graphql, names: [] }), { body: '{}' })
  t.end()
})

t.test('near misses differ in method, in the last word and by one name', t => {
  const misses = (request: Partial<Request>) => missesOf(found(request) as Shape)
  const requests = misses({ url: 'https://api.example/v1/items/7?q=1', method: 'PATCH' })
  t.strictSame(requests, [
    { method: 'PUT', url: 'https://api.example/v1/items/7?q=1' },
    { method: 'PATCH', url: 'https://api.example/v1/itemsx/7?q=1' },
    { method: 'PATCH', url: 'https://api.example/v1/items/7?further_name=1&q=1' },
  ])
  t.equal(misses({ url: 'https://api.example/12/34' }).length, 2, 'no word')
  t.equal(missesOf({ ...(found({}) as Shape), names: [] }).length, 2, 'no names')
  const graphql = typed('application/json', '{"query":"query { me }"}')
  t.equal(misses({ ...graphql, url: 'https://api.example/graphql' }).length, 2, 'a root field is no name')
  t.end()
})
