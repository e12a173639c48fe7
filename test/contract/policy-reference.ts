import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { detectors } from '../../src/policy/detectors/detectors.ts'
import { fieldKinds } from '../../src/policy/language/fields/field-table.ts'
import { limits } from '../../src/policy/language/model.ts'
import { findOperator, operatorTable } from '../../src/policy/language/operators/operators.ts'
import { policyKeys, ruleKeys } from '../../src/policy/language/parse.ts'
import { conditionKeys } from '../../src/policy/language/parse-condition.ts'
import { quoted, referencePage, tableRows, firstWords as wordsOf } from '../fixtures/reference.ts'
import { schemaFile, schemaText } from '../fixtures/schemas.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = referencePage

const firstWords = (heading: string) => wordsOf(tableRows(heading))

t.test('docs/policy-reference.md lists every field with its type and phase', async t => {
  const listed = tableRows('Field').map(([name = '', type, phase]) => [name.replace(/`|\.NAME/g, ''), type, phase])
  t.strictSame(
    listed,
    [...fieldKinds].map(([name, { type, phase }]) => [name, type, phase]),
  )
})

t.test('docs/policy-reference.md lists every operator with its negation and its other names', async t => {
  const negationOf = new Map<unknown, string>()
  for (const [name, form] of operatorTable) if (name !== form.name) negationOf.set(form, name)
  const rows = tableRows('Operator')
  const positive = operatorTable.filter(([name, form]) => name === form.name)
  t.strictSame(
    rows.map(([name = '', negation = '']) => [quoted(name)[0], quoted(negation)[0]]),
    positive.map(([name, form]) => [name, negationOf.get(form)]),
  )
  const aliases = rows.flatMap(([, , also = '']) => quoted(also))
  t.equal(negationOf.size, operatorTable.length - positive.length, 'a form has one negation')
  t.strictSame(aliases.sort(), operatorTable.flatMap(([, , ...names]) => names).sort())
  for (const [name = '', , also = ''] of rows) {
    for (const alias of quoted(also)) t.equal(findOperator(alias)?.form.name, quoted(name)[0], alias)
  }
})

t.test('docs/policy-reference.md lists every key of a policy, a rule and a condition', async t => {
  t.strictSame(firstWords('Key of a policy').sort(), [...policyKeys].sort())
  t.strictSame(firstWords('Key of a rule').sort(), [...ruleKeys].sort())
  t.strictSame(firstWords('Key of a condition').sort(), [...conditionKeys].sort())
})

t.test('docs/policy-reference.md lists every detector in its group', async t => {
  const listed = tableRows('Group').map(([group = '', names = '']) => [quoted(group)[0], quoted(names)])
  const ids = (group: string) => [...new Set(detectors.filter(one => one.group === group).map(({ id }) => id))]
  for (const [group, names] of listed) t.strictSame([...(names as string[])].sort(), ids(group as string).sort())
  t.strictSame(
    listed.map(([group]) => group),
    [...new Set(detectors.map(({ group }) => group))],
  )
})

/** Every code of this shape that the source mentions. */
function codesInSource(pattern: RegExp): string[] {
  const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))
  const found = files.flatMap(name => readFileSync(`${root}src/${name}`, 'utf8').match(pattern) ?? [])
  return [...new Set(found)].sort()
}

t.test('docs/policy-reference.md lists every code of an error and of a warning', async t => {
  const codes = firstWords('Code')
  const warnings = page.split('\n## Warnings')[1] ?? ''
  t.strictSame(codes.sort(), codesInSource(/\bE_[A-Z]+(?:_[A-Z]+)*\b/g))
  const listed = Array.from(warnings.matchAll(/^\| `(W_\w+)`/gm), ([, code = '']) => code)
  t.strictSame(listed.sort(), codesInSource(/(?<!constants\.)\bW_[A-Z]+(?:_[A-Z]+)*\b/g))
})

t.test('docs/policy-reference.md names every limit', async t => {
  for (const [name, value] of Object.entries(limits)) t.ok(page.includes(value.toLocaleString('en')), name)
})

t.test('policy.schema.json is that of the tables', async t => {
  const text = readFileSync(schemaFile('policy.schema.json'), 'utf8')
  t.equal(text, schemaText('policy.schema.json'), 'Rewrite it with: node test/fixtures/schemas.ts')
})
