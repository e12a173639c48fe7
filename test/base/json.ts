/** Threat T26 of SECURITY.md. */
import fc from 'fast-check'
import t from 'tap'
import { JsonReader, parseJson, parseStrictJson } from '../../src/base/json.ts'

const parse = (text: string) => parseStrictJson(Buffer.from(text))

t.test('what JSON.parse gives is what comes out', async t => {
  fc.assert(
    fc.property(fc.json(), text => {
      fc.pre(!text.includes('__proto__'))
      t.strictSame(parse(text), { value: JSON.parse(text) })
    }),
    { numRuns: 200 },
  )
})

t.test('exactly the texts are read that JSON.parse reads', async t => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '"\\u0061"',
    '\\',
    '1',
    '-0.5e+7',
    '01',
    ' ',
    '\n',
  )
  const others = fc.constantFrom(
    'true',
    'nul',
    'null',
    '\u00a0',
    '\0',
    '"\t"',
    '"\\x"',
    '"\\ud800"',
    '__proto__',
    '.5',
    '1.',
  )
  const mutilated = fc
    .tuple(fc.json(), fc.nat(), fc.oneof(piece, others))
    .map(
      ([text, at, piece]) => text.slice(0, at % (text.length + 1)) + piece + text.slice((at + 1) % (text.length + 1)),
    )
  const soup = fc.array(fc.oneof(piece, others), { maxLength: 8 }).map(parts => parts.join(''))
  const outcome = (read: () => unknown) => {
    try {
      return { value: read() }
    } catch (error) {
      return error instanceof SyntaxError ? 'not JSON' : error
    }
  }
  fc.assert(
    fc.property(fc.oneof(mutilated, soup), text => {
      t.strictSame(
        outcome(() => new JsonReader(text).read()),
        outcome(() => JSON.parse(text)),
        text,
      )
    }),
    { numRuns: 2_000 },
  )
})

t.test('a name with escapes is read right after a name that looks like its escape', async t => {
  const name = '\\u0062'
  for (const read of [parseJson, (text: string) => Object(parse(text)).value]) {
    JSON.parse(`{"method":1,"\\${name}":1}`)
    t.strictSame(read(`{"method":1,"${name}ranch":1}`), { method: 1, branch: 1 })
  }
})

t.test('values are counted: members and elements, lists and objects included', async t => {
  const text = Buffer.from('{"a":[1,"x",null],"b":{}}')
  t.match(parseStrictJson(text, 6), { value: {} })
  t.match(parseStrictJson(text, 5), { problem: 'has more than 5 values' })
  t.match(parse(`[${'{},'.repeat(100_000)}{}]`), { problem: /more than 100000 values/ })
})

t.test('a syntax error names its place', async t => {
  t.match(parse('{\n  "a": 1,\n  b: 2 }'), { problem: 'is not JSON at line 3, column 3' })
})

t.test('a name twice in one object is found wherever it is, and nowhere else', async t => {
  const twice = ['{"a":1,"a":2}', '[{"b":{"a":1,"a":2}}]', '{"a":{"x":1},"a":[]}', '{"\\u0061":1,"a":2}', '{"":1,"":2}']
  for (const text of twice) t.match(parse(text), { problem: /has the name ".*" twice/ }, text)
  const once = [
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":2}]',
    '{"a":"a\\",\\"a","b":"{\\"a\\":1,"}',
    '{"a":["a","a"],"b":"a"}',
  ]
  for (const text of once) t.match(parse(text), { value: JSON.parse(text) }, text)
})

t.test('depth is bounded', async t => {
  const nested = (depth: number) => parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
  t.match(nested(200), { value: [] })
  t.match(nested(201), { problem: /deeper than 200/ })
})

t.test('bytes that are no UTF-8 text, a byte order mark and what is no JSON are refused', async t => {
  t.match(parseStrictJson(new Uint8Array([0x22, 0xc3, 0x28, 0x22])), { problem: 'is not UTF-8' })
  t.match(parse('\ufeff{}'), { problem: /^is not JSON/ })
  t.match(parse(''), { problem: /^is not JSON/ })
  t.match(parse('{"a":1}\n'), { value: { a: 1 } })
})

t.test('a member that would set a prototype is rejected, and set by nothing else', async t => {
  t.match(parse('[{"a":{"__proto__":{"admin":true}}}]'), { problem: 'has the name "__proto__"' })
  const lenient = parseJson('{"__proto__":{"admin":true},"constructor":1}')
  t.strictSame(Object.keys(Object(lenient)), ['__proto__', 'constructor'])
  t.equal(Object(lenient).admin, undefined)
})
