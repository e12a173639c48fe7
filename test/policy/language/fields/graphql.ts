/** Fields of GraphQL requests. */

import t from 'tap'
import { missing, unreadable } from '../../../../src/policy/values/truth.ts'
import { readField } from '../../../fixtures/read-field.ts'
import { truthOf } from '../../../fixtures/rulebook.ts'

const url = 'https://a.example/graphql'
const post = (body: unknown, more: object = {}) => ({ request: { method: 'POST', url, body, ...more } })
const fieldsOf = (query: string, more: object = {}) => readField('graphql.fields', post({ query, ...more }))

t.test('operation, name and root fields of one request', async t => {
  const given = post({ query: 'mutation Pay($a: Int) { pay(amount: $a) { id } log }', variables: { a: 1 } })
  t.equal(readField('graphql.operation', given), 'mutation')
  t.equal(readField('graphql.name', given), 'Pay')
  t.strictSame(readField('graphql.fields', given), { each: ['pay', 'log'] })
  t.equal(readField('graphql.operation', post({ query: '{ a }' })), 'query')
  t.equal(readField('graphql.name', post({ query: '{ a }' })), missing)
})

t.test('aliases, fragments and directives hide no field', async t => {
  t.strictSame(fieldsOf('{ safe: drop, ok: drop }'), { each: ['drop'] })
  t.strictSame(fieldsOf('{ a ...F } fragment F on Query { b ...G } fragment G on Query { c ...F }'), {
    each: ['a', 'b', 'c'],
  })
  t.strictSame(fieldsOf('{ ... on Query @skip(if: true) { b } ... { c @include(if: false) } }'), { each: ['b', 'c'] })
  t.equal(fieldsOf('{ ...F }'), unreadable)
  t.equal(fieldsOf('{ ...F } fragment F on Q { a } fragment F on Q { b }'), unreadable)
})

t.test('of several operations the one that is named is read; else none can be', async t => {
  const query = 'query A { a } mutation B { b }'
  t.strictSame(fieldsOf(query, { operationName: 'B' }), { each: ['b'] })
  for (const operationName of [undefined, null, '', 'C', ['A']]) t.equal(fieldsOf(query, { operationName }), unreadable)
  t.equal(fieldsOf('query A { a } query A { b }', { operationName: 'A' }), unreadable)
  t.equal(fieldsOf('query A { a }', { operationName: 'B' }), unreadable)
})

t.test('GET, forms and application/graphql are read as servers do', async t => {
  const get = (search: string) => ({ request: { url: `${url}?${search}` } })
  t.strictSame(readField('graphql.fields', get('query=%7Ba%7D'), 'head'), { each: ['a'] }, 'known at the head')
  t.equal(readField('graphql.fields', get('query=%7Ba%7D&query=%7Bb%7D')), unreadable)
  for (const known of ['extensions=%7B%7D', 'doc_id=1', 'queryId=a', 'persistedQuery=a', 'documentId=a']) {
    t.equal(readField('graphql.fields', get(known)), unreadable, known)
  }
  t.equal(readField('graphql.fields', get('page=2')), missing)
  t.strictSame(readField('graphql.fields', post('{ a }', { headers: { 'content-type': 'application/graphql' } })), {
    each: ['a'],
  })
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  t.strictSame(readField('graphql.fields', post('query=%7Ba%7D', form)), { each: ['a'] })
  const multipart = { headers: { 'content-type': 'multipart/form-data; boundary=x' } }
  t.equal(readField('graphql.fields', post('--x--', multipart)), unreadable)
  const both = post({ query: '{ a }' }, { url: `${url}?query=%7Bb%7D` })
  t.equal(readField('graphql.fields', both), unreadable)
  t.strictSame(readField('graphql.fields', post({ variables: {} }, { url: `${url}?query=%7Bb%7D` })), { each: ['b'] })
})

t.test('what the server knows by a hash or an id is unreadable; other bodies have no operation', async t => {
  for (const body of [
    { extensions: { persistedQuery: {} } },
    { documentId: 'x' },
    { operationName: 'A' },
    { query: 1 },
  ]) {
    t.equal(readField('graphql.operation', post(body)), unreadable, JSON.stringify(body))
  }
  for (const body of [{ id: 5 }, [], [1], {}]) t.equal(readField('graphql.operation', post(body)), missing)
})

t.test('a document beside which a stored one is named is unreadable, in any letter case', async t => {
  const query = '{ a }'
  for (const key of ['id', 'queryId', 'documentId', 'doc_id', 'docId', 'operationId', 'persistedQuery', 'persisted']) {
    t.equal(readField('graphql.fields', post({ query, [key]: 'x' })), unreadable, key)
    t.equal(readField('graphql.fields', post({ query, [key.toUpperCase()]: 'x' })), unreadable, key.toUpperCase())
    t.equal(readField('graphql.fields', post({ query }, { url: `${url}?${key}=x` })), unreadable, `${key} in the URL`)
  }
  const known = { persistedQuery: { version: 1, sha256Hash: 'x' } }
  t.equal(readField('graphql.fields', post({ query, extensions: known })), unreadable)
  const inUrl = (extensions: string) => ({ request: { url: `${url}?query=%7Ba%7D&extensions=${extensions}` } })
  t.equal(readField('graphql.fields', inUrl(encodeURIComponent(JSON.stringify(known)))), unreadable)
  t.equal(readField('graphql.fields', inUrl('%7B')), unreadable, 'extensions that are no JSON')
  t.equal(readField('graphql.fields', post({ id: 'x', variables: {} })), unreadable)
  t.equal(readField('graphql.fields', post({ query, Query: 'mutation { b }' })), unreadable)
  t.equal(readField('graphql.fields', post({ Query: 'mutation { b }' })), unreadable)
  for (const extensions of [null, {}, { clientLibrary: { name: '@apollo/client' } }]) {
    t.strictSame(readField('graphql.fields', post({ query, extensions })), { each: ['a'] }, JSON.stringify(extensions))
  }
  t.strictSame(readField('graphql.fields', inUrl('%7B%22clientLibrary%22:1%7D'), 'head'), { each: ['a'] })
})

t.test('documents that are broken, long, deep or of many tokens are unreadable', async t => {
  const deep = `${'{a'.repeat(201)}${'}'.repeat(201)}`
  for (const query of [
    '',
    '{',
    '{ a',
    'type A { a: Int }',
    deep,
    `#${'}'.repeat(201)}\n${deep}`,
    deep.replaceAll('{a', '{a(b:"}")'),
    `{${' a'.repeat(5_001)} }`,
    `{a}#${'x'.repeat(131_072)}`,
  ]) {
    t.equal(fieldsOf(query), unreadable, query.slice(0, 20))
  }
  t.strictSame(fieldsOf(`{${' a'.repeat(4_000)} }`), { each: ['a'] })
  t.strictSame(
    fieldsOf(`{a(b:"${'{'.repeat(201)}")}#${'{'.repeat(201)}`),
    { each: ['a'] },
    'a text of brackets is not deep',
  )
})

t.test('the requests of a batch must agree', async t => {
  const is = (value: string, quantifier: 'any' | 'all' = 'any') => ({
    ...{ field: 'graphql.fields', operator: 'eq', value, quantifier },
  })
  const batch = (...queries: string[]) => post(queries.map(query => ({ query })))
  t.equal(truthOf(is('a'), batch('{ a }', '{ a b }')), 'T')
  t.equal(truthOf(is('a'), batch('{ a }', '{ b }')), 'E')
  t.equal(truthOf(is('a', 'all'), batch('{ a }', '{ a b }')), 'F')
  t.equal(truthOf(is('b'), batch('{ a }', '{')), 'E')
  t.equal(readField('graphql.fields', post(Array.from({ length: 51 }, () => ({ query: '{ a }' })))), unreadable)
})
