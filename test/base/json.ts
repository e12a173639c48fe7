/** Threat T26 of SECURITY.md. */
import fc from 'fast-check'
import { parseStrictJson } from '../../src/base/json.ts'
import t from '../fixtures/tap.ts'

const parse = (text: string) => parseStrictJson(Buffer.from(text))

t.test('what JSON.parse gives is what comes out', async t => {
  fc.assert(
    fc.property(fc.json(), text => {
      t.strictSame(parse(text), { value: JSON.parse(text) })
    }),
    { numRuns: 200 },
  )
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

t.test('names of the prototype are names like any other', async t => {
  const parsed = parse('{"__proto__":{"admin":true}}') as { value: object }
  t.strictSame(Object.keys(parsed.value), ['__proto__'])
  t.equal(({} as { admin?: unknown }).admin, undefined)
})
