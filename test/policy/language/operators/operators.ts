import t from 'tap'
import { findOperator, operatorNames } from '../../../../src/policy/language/operators/operators.ts'
import { truthOf } from '../../../fixtures/rulebook.ts'

/** Value of a condition on `input.body.x`, of which the body holds `x` as given; undefined leaves it out. */
function onBody(operator: string, value: unknown, x: unknown, rest: object = {}): string {
  const condition = { field: 'input.body.x', operator, value, ...rest }
  return truthOf(condition, {
    request: { method: 'POST', url: 'https://a.example/', body: x === undefined ? {} : { x } },
  })
}

function onHeader(operator: string, value: unknown, x: string | string[] | undefined, rest: object = {}): string {
  const headers: Record<string, string | string[]> = x === undefined ? {} : { x }
  return truthOf(
    { field: 'input.headers.x', operator, value, ...rest },
    { request: { url: 'https://a.example/', headers } },
  )
}

/** Operator, value, actual value, what it comes to. */
type Row = readonly [operator: string, value: unknown, actual: unknown, result: string]

const rows: readonly Row[] = [
  ['eq', 'a', 'a', 'T'],
  ['eq', 'a', 'A', 'F'],
  ['eq', '10', 10, 'T'],
  ['eq', '10.0', 10, 'T'],
  ['eq', '1e1', 10, 'T'],
  ['eq', '010', 10, 'F'],
  ['eq', '10', '10', 'T'],
  ['eq', '10', '10.0', 'F'],
  ['eq', 'true', true, 'T'],
  ['eq', 'false', true, 'F'],
  ['eq', 'null', null, 'T'],
  ['eq', 'null', undefined, 'F'],
  ['eq', 'a', { a: 1 }, 'F'],
  ['eq', 10, 10, 'T'],
  ['eq', 10, '10', 'F'],
  ['eq', true, true, 'T'],
  ['eq', true, 'true', 'F'],
  ['eq', true, 1, 'F'],
  ['eq', 'a', ['b', 'a'], 'T'],
  ['eq', 'a', [], 'F'],
  ['eq', '', '', 'T'],
  ['ne', 'a', undefined, 'T'],
  ['ne', 'a', { a: 1 }, 'T'],
  ['ne', 'a', ['b', 'a'], 'F'],
  ['in', 'a, b', 'b', 'T'],
  ['in', '["a,b", "c"]', 'a,b', 'T'],
  ['in', ['1', '2'], 2, 'T'],
  ['in', [1, 2], '2', 'F'],
  ['in', [1, 2], 2, 'T'],
  ['in', ['true'], true, 'T'],
  ['in', 'a,b', undefined, 'F'],
  ['in', 'a,b', {}, 'F'],
  ['notIn', 'a,b', undefined, 'T'],
  ['notIn', 'a,b', {}, 'T'],
  ['nin', 'a,b', 'a', 'F'],
  ['hasAll', 'a,b', ['b', 'c', 'a'], 'T'],
  ['hasAll', 'a,b', ['a'], 'F'],
  ['hasAll', 'a', 'a', 'T'],
  ['hasAll', 'a', undefined, 'F'],
  ['gt', '5', 6, 'T'],
  ['gt', '5', 5, 'F'],
  ['>=', '5', 5, 'T'],
  ['ge', 5, '5.0', 'T'],
  ['<', '5', '4e0', 'T'],
  ['le', '5', 6, 'F'],
  ['gt', '5', undefined, 'F'],
  ['gt', '5', 'many', 'E'],
  ['gt', '5', '', 'E'],
  ['gt', '5', '0x10', 'E'],
  ['gt', '5', true, 'E'],
  ['gt', '5', null, 'E'],
  ['gt', '5', {}, 'E'],
  ['gt', '5', [1, 'x', 9], 'T'],
  ['gt', '5', [1, 'x'], 'E'],
  ['gt', '5', [], 'F'],
  ['gte', 10, 10, 'T'],
  ['gte', 10, 9, 'F'],
  ['lt', 10, 9, 'T'],
  ['lt', 10, 10, 'F'],
  ['lte', 10, 10, 'T'],
  ['lte', 10, 11, 'F'],
  ['between', '10,20', 10, 'T'],
  ['between', '[10, 20]', 20, 'T'],
  ['between', '10,20', 21, 'F'],
  ['between', '10,20', {}, 'E'],
  ['startsWith', 'ab', 'abc', 'T'],
  ['startsWith', '12', 123, 'T'],
  ['startsWith', 'tr', true, 'T'],
  ['startsWith', 'a', null, 'F'],
  ['startsWith', 'a', undefined, 'F'],
  ['startsWith', 'a', {}, 'E'],
  ['startsWith', 'a', ['x', 'ab'], 'T'],
  ['startsWith', 'a', ['x', {}], 'E'],
  ['notStartsWith', 'a', undefined, 'T'],
  ['notStartsWith', 'a', {}, 'E'],
  ['endsWith', 'c', 'abc', 'T'],
  ['notEndsWith', 'c', 'abc', 'F'],
  ['contains', 'b', 'abc', 'T'],
  ['notContains', 'b', 'xyz', 'T'],
  ['like', 'a*c', 'abbbc', 'T'],
  ['like', 'a*c', 'abcd', 'F'],
  ['like', 'a?c', 'abc', 'T'],
  ['like', 'a?c', 'ac', 'F'],
  ['like', 'a\\*c', 'a*c', 'T'],
  ['like', '*', '', 'T'],
  ['like', 'a*', [{}], 'E'],
  ['notLike', 'a*', 'b', 'T'],
  ['matches', 'b+', 'abbc', 'T'],
  ['matches', '^b', 'abbc', 'F'],
  ['matches', 'b', {}, 'E'],
  ['notMatches', 'b', undefined, 'T'],
  ['hostMatches', '*.a.example', 'x.a.example', 'T'],
  ['hostMatches', '*.a.example', 'a.example', 'F'],
  ['hostMatches', '.a.example', 'A.example', 'T'],
  ['hostMatches', 'a.example,b.example', 'b.example', 'T'],
  ['hostMatches', '*.a.example', 'xa.example', 'F'],
  ['notHostMatches', '*.a.example', undefined, 'T'],
  ['ipIn', '10.0.0.0/8', '10.1.2.3', 'T'],
  ['ipIn', '10.0.0.0/8', '::ffff:10.1.2.3', 'T'],
  ['ipIn', '::ffff:10.0.0.0/104', '10.1.2.3', 'T'],
  ['ipIn', '2001:db8::/32', '2001:db8::1', 'T'],
  ['ipIn', '2001:db8::/32', '[2001:db8::1]', 'T'],
  ['ipIn', '10.0.0.1', '10.0.0.2', 'F'],
  ['ipIn', '0.0.0.0/0', 'not an address', 'F'],
  ['notIpIn', '10.0.0.0/8', 'not an address', 'T'],
  ['exists', 'true', null, 'T'],
  ['exists', undefined, 0, 'T'],
  ['exists', 'false', undefined, 'T'],
  ['notExists', undefined, undefined, 'T'],
  ['notExists', 'false', undefined, 'F'],
  ['isEmpty', 'true', undefined, 'T'],
  ['isEmpty', 'true', null, 'T'],
  ['isEmpty', 'true', '', 'T'],
  ['isEmpty', 'true', [], 'T'],
  ['isEmpty', 'true', {}, 'T'],
  ['isEmpty', 'true', 0, 'F'],
  ['isEmpty', 'false', 'a', 'T'],
  ['isEmpty', 'false', undefined, 'F'],
  ['typeIs', 'string,number', 1, 'T'],
  ['typeIs', 'array', [1], 'T'],
  ['typeIs', 'object', {}, 'T'],
  ['typeIs', 'null', null, 'T'],
  ['typeIs', 'null', undefined, 'F'],
  ['detects', 'email', 'write to a.b@c.example', 'T'],
  ['detects', 'secret', 'nothing here', 'F'],
  ['detects', 'secret', {}, 'E'],
  ['detects', 'card-number', 4111111111111111, 'T'],
]

for (const [operator, value, actual, result] of rows) {
  t.test(`${JSON.stringify(actual)} ${operator} ${JSON.stringify(value)} is ${result}`, async t => {
    t.equal(onBody(operator, value, actual), result)
  })
}

t.test('every operator is in the table above; those of paths are below', async t => {
  const tried = new Set(rows.map(([name]) => findOperator(name)?.name))
  tried.add('pathMatches').add('notPathMatches')
  const untried = operatorNames.filter(name => !tried.has(name))
  t.strictSame(untried, [])
})

t.test('operator names are read in any letter case', async t => {
  t.equal(onBody('STARTSWITH', 'a', 'abc'), 'T')
  t.equal(onBody('NotIn', 'a', 'b'), 'T')
})

t.test('text channels compare typed numbers with the number that is spelled', async t => {
  t.equal(onHeader('eq', 10, '10.0'), 'T')
  t.equal(onHeader('eq', 10, 'ten'), 'F')
  t.equal(onHeader('eq', '10', '10.0'), 'F', 'a text is compared as text')
  t.equal(onHeader('eq', true, 'true'), 'T')
  t.equal(onHeader('in', [10, true], '1e1'), 'T')
})

t.test('a repeated header is a list', async t => {
  t.equal(onHeader('eq', 'b', ['a', 'b']), 'T')
  t.equal(onHeader('ne', 'b', ['a', 'b']), 'F')
  t.equal(onHeader('eq', 'b', ['b', 'b'], { quantifier: 'all' }), 'T')
  t.equal(onHeader('eq', 'b', ['a', 'b'], { quantifier: 'all' }), 'F')
  t.equal(onHeader('gt', 5, ['1', '9']), 'T')
})

t.test('ignoreCase compares without letter case', async t => {
  const ignoreCase = { ignoreCase: true }
  t.equal(onBody('eq', 'ABC', 'abc', ignoreCase), 'T')
  t.equal(onBody('in', 'ABC,D', 'd', ignoreCase), 'T')
  t.equal(onBody('startsWith', 'AB', 'abc', ignoreCase), 'T')
  t.equal(onBody('like', 'A*', 'abc', ignoreCase), 'T')
  t.equal(onBody('matches', '^AB', 'abc', ignoreCase), 'T')
  t.equal(onBody('contains', 'ΑΣ', 'ΑΣΒ', ignoreCase), 'T', 'also where a letter depends on its neighbours')
  t.equal(onBody('eq', 'TRUE', true, ignoreCase), 'T')
})

t.test('quantifier all asks every element, and at least one', async t => {
  const all = { quantifier: 'all' }
  t.equal(onBody('in', 'a,b', ['a', 'b'], all), 'T')
  t.equal(onBody('in', 'a,b', ['a', 'c'], all), 'F')
  t.equal(onBody('in', 'a,b', [], all), 'F')
  t.equal(onBody('in', 'a,b', undefined, all), 'F')
  t.equal(onBody('gt', 5, [6, 'x'], all), 'E')
  t.equal(onBody('gt', 5, [1, 'x'], all), 'F')
  t.equal(onBody('notIn', 'a,b', ['a', 'c'], all), 'T', 'the negation of "every one is in the list"')
})

t.test('[*] stands for each element, also of lists within', async t => {
  const request = (x: unknown) => ({ request: { url: 'https://a.example/', body: { x } } })
  const each = (operator: string, value: unknown, x: unknown, rest: object = {}) =>
    truthOf({ field: 'input.body.x[*].n', operator, value, ...rest }, request(x))
  t.equal(each('eq', 'a', [{ n: 'b' }, { n: 'a' }]), 'T')
  t.equal(each('eq', 'a', [{ n: ['b', 'a'] }]), 'T')
  t.equal(each('eq', 'a', { n: 'a' }), 'F', 'not a list')
  t.equal(each('eq', 'a', [{ n: 'a' }, {}], { quantifier: 'all' }), 'F', 'one has no n')
  t.equal(each('eq', 'a', [{ n: 'a' }, { n: [] }], { quantifier: 'all' }), 'F', 'one has an empty list')
  t.equal(each('exists', 'true', [{}, { n: 1 }]), 'T')
  t.equal(each('exists', 'true', [{}, { n: 1 }], { quantifier: 'all' }), 'F')
  t.equal(each('exists', 'false', [{}, { n: 1 }]), 'F')
  t.equal(each('exists', 'true', []), 'F')
  t.equal(each('isEmpty', 'true', []), 'T')
  t.equal(each('typeIs', 'array', [{ n: [] }]), 'T')
  t.equal(each('hasAll', 'a,b', [{ n: 'a' }, { n: ['b'] }]), 'T')
})

t.test('path patterns: * stays in its segment, ** does not, {id} is one segment', async t => {
  const path = (value: string, actual: string, rest: object = {}) =>
    truthOf(
      { field: 'input.path', operator: 'pathMatches', value, ...rest },
      { request: { url: `https://a.example${actual}` } },
    )
  const matching: [string, string][] = [
    ['/v1/*', '/v1/a'],
    ['/v1/**', '/v1'],
    ['/v1/**', '/v1/a/b'],
    ['/**/b', '/v1/a/b'],
    ['/a/**/z', '/a/z'],
    ['/{id}', '/7'],
    ['/v1/*.json', '/v1/a.json'],
    ['/a,/b', '/b'],
    ['**', '/any/path'],
  ]
  for (const [pattern, actual] of matching) t.equal(path(pattern, actual), 'T', `${pattern} ${actual}`)
  const failing: [string, string][] = [
    ['/v1/*', '/v1/a/b'],
    ['/v1/*', '/v1'],
    ['/{id}', '/'],
    ['/v1/**', '/v10'],
    ['/**/b', '/v1/b/c'],
    ['/A', '/a'],
    ['/a', '/a/'],
  ]
  for (const [pattern, actual] of failing) t.equal(path(pattern, actual), 'F', `${pattern} ${actual}`)
  t.equal(path('/A', '/a', { ignoreCase: true }), 'T')
  t.equal(path('/a/b', '/a%2Fb'), 'E', 'one reading matches, the path as it is sent does not')
})

t.test('a time window wraps over midnight and ends before its end', async t => {
  const at = (clock: string, value = '22:00-06:00') => {
    const time = `2026-01-05T${clock}:00Z`
    return truthOf(
      { field: 'time.clock', operator: 'between', value },
      { request: { url: 'https://a.example/' }, time },
    )
  }
  t.equal(at('22:00'), 'T')
  t.equal(at('05:59'), 'T')
  t.equal(at('06:00'), 'F')
  t.equal(at('12:00', '09:00-17:00'), 'T')
  t.equal(at('17:00', '09:00-17:00'), 'F')
  t.equal(at('23:59', '09:00-24:00'), 'T')
})

t.test('a class of segments stands for ids, and never for a word', async t => {
  const path = (value: string, actual: string) =>
    truthOf({ field: 'input.path', operator: 'pathMatches', value }, { request: { url: `https://a.example${actual}` } })
  for (const [name, inside, outside] of [
    ['int', ['0', '1234567890123456789'], ['12345678901234567890', '-1', '1.0', 'me', '', '0x1']],
    ['date', ['2026-01-05'], ['2026-13-05', '2026-01-32', '2026-1-5', '2026-01-05T10:00']],
    ['uuid', ['7d444840-9dc0-11d1-b245-5ffdce74fad2', '7D444840-9DC0-11D1-B245-5FFDCE74FAD2'], ['7d4448409dc0']],
    ['hex', ['9dc041d1b2455ffd'], ['9dc041d1b2455ff', '9dc041d1b2455ffg']],
    ['key', ['cus_9dc041d1b245', 'a-b_c-d_e-f_g-h1'], ['cus_9dc041', 'organizations-all', 'cus.9dc041d1b2455']],
  ] as const) {
    const pattern = `/users/{id:${name}}`
    for (const segment of inside) t.equal(path(pattern, `/users/${segment}`), 'T', `${name} ${segment}`)
    for (const segment of [...outside, 'export']) t.equal(path(pattern, `/users/${segment}`), 'F', `${name} ${segment}`)
    t.equal(path(pattern, `/users/${inside[0]}/${inside[0]}`), 'F', 'one segment')
    t.equal(path(`/users/{id:${name}}/orders/**`, `/users/${inside[0]}/orders/7`), 'T', 'with more behind it')
  }
})
