/** T77: the model of a call is read as servers read it, from members of the top level. */
import fc from 'fast-check'
import t from 'tap'
import { topMembers } from '../../src/llm/top-members.ts'
import { runs } from '../fixtures/runs.ts'

const wanted = new Map([
  ['model', { name: 'model' }],
  ['max_tokens', { name: 'max_tokens' }],
  ['skip', { name: 'skip' }],
  ['config', { name: 'config', inner: new Map([['most', { name: 'most' }]]) }],
])
const read = (text: string) => topMembers(Buffer.from(text), wanted)

t.test('wanted members are read as JSON.parse reads them, whatever stands around them', async t => {
  const name = fc.oneof(fc.constantFrom('model', 'max_tokens', 'tools', 'm"odel', 'a\\'), fc.string())
  const value = fc.jsonValue()
  const property = fc.property(
    fc.dictionary(name, value),
    fc.constantFrom(undefined, 1, '\r\n\t '),
    (object, indent) => {
      const folded = Object.keys(object).map(key => key.toUpperCase().toLowerCase())
      fc.pre(new Set(folded).size === folded.length)
      const text = JSON.stringify(object, null, indent)
      const parsed = JSON.parse(text)
      const found = read(text)
      for (const key of ['model', 'max_tokens']) {
        if (Object.hasOwn(parsed, key)) t.strictSame(found?.get(key), parsed[key])
        else if (!folded.includes(key)) t.equal(found?.has(key), false)
      }
    },
  )
  fc.assert(property, { numRuns: runs(5_000, 200) })
  t.pass()
})

t.test('what is no object alone is not read', async t => {
  for (const text of ['', '[]', '1', '"x"', '{', '{"model"', '{"model":', '{"model":1', '{"model":}', '{"model":1,}']) {
    t.equal(read(text), undefined, text)
  }
  for (const text of ['{"model":1}{}', '{"model":1} x', '{"a" 1}', '{a:1}', '{"model":nope}', '{"model":1 2}']) {
    t.equal(read(text), undefined, text)
  }
  t.strictSame(read(' {} \n'), new Map())
})

t.test(
  'an object of more than 1,000 members is not read: a body of such names would hold up all other calls',
  async t => {
    const object = (count: number) => `{${'"a":1,'.repeat(count - 1)}"model":2}`
    t.strictSame(read(object(1_000)), new Map([['model', 2]]))
    t.equal(read(object(1_001)), undefined)
    t.equal(read(`{"config":${object(1_001)}}`), undefined)
  },
)

t.test('a wanted value of more than 16 KiB is not parsed, which would hold up all other calls', async t => {
  t.strictSame(read(`{"model":"${'x'.repeat(16_382)}"}`), new Map([['model', 'x'.repeat(16_382)]]))
  t.equal(read(`{"model":"${'x'.repeat(16_383)}"}`), undefined)
  t.strictSame(read(`{"other":[${'{},'.repeat(9_000)}0],"model":1}`), new Map([['model', 1]]))
})

t.test('a text ends at its quote, however far away it and its escapes are', async t => {
  for (let length = 0; length < 100; length++) {
    for (const text of [
      `${'x'.repeat(length)}"`,
      '\\'.repeat(length),
      `${'"'.repeat(length)}x`,
      `${'\\'.repeat(length)}"`,
    ]) {
      t.strictSame(read(JSON.stringify({ other: text, model: 2 })), new Map([['model', 2]]), text)
    }
  }
})

t.test('a name that is there twice, in any spelling, is not read', async t => {
  for (const other of ['model', 'MODEL', 'Model', '\\u006dodel', 'mo\\u0064el']) {
    t.equal(read(`{"model":"a","${other}":"b"}`), undefined, other)
  }
  t.equal(read('{"skip":1,"\u017f\u212aip":2}'), undefined, 'letters that some servers read as s and k')
  t.strictSame(read('{"a":{"model":1},"model":2,"b":[{"model":3}]}'), new Map([['model', 2]]))
  t.strictSame(read('{"a":1,"a":2,"Max_Tokens":7}'), new Map([['max_tokens', 7]]))
})

t.test('wanted members of a wanted object are read in the same way', async t => {
  t.strictSame(read('{"config":{"a":{"most":1},"most":[2]},"model":3}')?.get('config'), new Map([['most', [2]]]))
  t.strictSame(read('{"config": { } }')?.get('config'), new Map())
  for (const value of ['null', '7', '"x"', '["most"]']) {
    t.strictSame(read(`{"config":${value}}`)?.get('config'), JSON.parse(value))
  }
  for (const inner of ['"most":1,"most":2', '"most":1,"MOST":2', '"most":1,"m\\u006fst":2', '"most":', '"most":1}{']) {
    t.equal(read(`{"config":{${inner}}}`), undefined, inner)
  }
})
