/** Two bodies of JSON are compared by value: as a comparison of all their single values has it. */
import fc from 'fast-check'
import t from 'tap'
import { type Json, readJson, stringOf } from '../../src/console/body/json.ts'
import { treeDifferences } from '../../src/console/body/trees.ts'
import { textValues } from '../../src/console/body/values.ts'

const treeOf = (text: string) => ({ text, value: readJson(text) as Json })
const compare = (texts: readonly string[], most = 1_000) => treeDifferences(texts.map(treeOf), most)

/** Every value that has no others in it, by its name. */
function flat(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  const walk = (value: Json, where: string) => {
    if (value.kind === 'list') for (const [index, item] of value.items.entries()) walk(item, `${where}[${index}]`)
    if (value.kind === 'object') for (const one of value.members) walk(one.value, `${where}.${one.name}`)
    const isWhole = value.from + 2 === value.to || value.kind === 'string' || value.kind === 'plain'
    if (isWhole)
      values.set(where, value.kind === 'string' ? `"${stringOf(text, value)}"` : text.slice(value.from, value.to))
  }
  walk(readJson(text) as Json, '')
  return values
}

function naive(texts: readonly string[]): readonly string[] {
  const all = texts.map(flat)
  const names = new Set(all.flatMap(values => [...values.keys()]))
  const differing = [...names].filter(name => all.some(values => values.get(name) !== all[0]?.get(name)))
  return differing.map(name =>
    JSON.stringify([name.replace(/^\./, '') || 'body', all.map(values => values.get(name) ?? null)]),
  )
}

const scalar = fc.oneof(fc.constantFrom(0, 1, 'a', 'b\n', true, null, ''), fc.integer({ min: 0, max: 3 }))
const { value: tree } = fc.letrec(tie => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('value'), { maxKeys: 4 }),
  ),
}))

t.test('the differences are those of all single values', async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(tree, { minLength: 2, maxLength: 3 }), async values => {
      const texts = values.map(value => JSON.stringify(value))
      const found = await compare(texts)
      const told = found.map(({ where, values }) => JSON.stringify([where, values.map(one => one ?? null)]))
      t.strictSame(told.toSorted(), naive(texts).toSorted(), texts.join(' '))
      for (const { values, at } of found) {
        const last = at && treeOf(texts.at(-1)!.slice(at.from, at.to))
        t.equal(last === undefined, values.at(-1) === undefined, 'where the last one has it')
      }
    }),
    { numRuns: 200 },
  )
})

t.test('names that stand twice, and names that need quotation marks', async t => {
  t.match(await compare(['{"to":1,"to":2}', '{"to":1,"to":3}']), [{ where: 'to (2)', values: ['2', '3'] }])
  t.match(await compare(['{"a b":{"c":1}}', '{"a b":{"c":2}}']), [{ where: '["a b"].c' }])
  t.match(await compare(['{"a":1}', '{ "a" : 1 }']), [], 'spaces are no difference')
})

t.test('no more are listed than asked for', async t => {
  const list = (first: number) => JSON.stringify(Array.from({ length: 50 }, (_, index) => first + index))
  t.equal((await compare([list(0), list(1)], 20)).length, 20)
})

t.test('texts differ between the beginning and the end that they share', async t => {
  const long = 'x'.repeat(70_001)
  const [one, two] = textValues([`${long}ab${long}`, `${long}c${long}`])
  t.strictSame([...one!], [['behind 70,001 characters', { text: 'ab', at: { from: 70_001, to: 70_003 } }]])
  t.strictSame([...two!.values()], [{ text: 'c', at: { from: 70_001, to: 70_002 } }])
  const [fewer, more] = textValues(['aa', 'aaa'])
  t.strictSame([[...fewer!], [...more!.values()].map(({ text }) => text)], [[], ['a']], 'what is shared counts once')
})
