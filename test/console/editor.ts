/** The editor of policies, without a browser: places, names that complete, differences. */
import t from 'tap'
import { openApi } from '../../src/api/openapi.ts'
import { completionsAt } from '../../src/console/policies/completion.ts'
import { diffLines, patchOf } from '../../src/console/policies/diff.ts'
import { documentText, listOperators } from '../../src/console/policies/document.ts'
import { lineOf, placeOfPath, syntaxProblem } from '../../src/console/policies/places.ts'
import { vocabulary } from '../../src/console/types.ts'
import { fieldKinds } from '../../src/policy/language/fields/field-table.ts'
import { operatorNames, operatorTable } from '../../src/policy/language/operators/operators.ts'

t.test('names that complete are those of the language', async t => {
  const { fields, operators, members } = vocabulary
  t.strictSame([...fields].sort(), [...fieldKinds.keys()].sort())
  t.strictSame([...operators].sort(), [...operatorNames].sort())
  const { PolicyInput, Rule, Condition } = openApi.components.schemas as Record<string, { properties: object }>
  const namesOf = (schema: { properties: object } | undefined) => Object.keys(schema!.properties).sort()
  t.strictSame([...members.policy].sort(), namesOf(PolicyInput))
  t.strictSame([...members.rule].sort(), namesOf(Rule))
  // The gateway sets `valueType` itself.
  t.strictSame([...members.condition, 'valueType'].sort(), namesOf(Condition))
})

t.test('what completes depends on where the cursor is', async t => {
  const at = (text: string, isAsked = false) => {
    const cursor = text.indexOf('|')
    return completionsAt(text.replace('|', ''), cursor, isAsked).words
  }
  t.strictSame(at('{"rules":[{"conditions":[{"field":"input.me|"'), ['input.method'])
  t.strictSame(at('{"rules":[{"effect": "h|"'), ['Hitl'])
  t.strictSame(at('{"rules":[{"na|'), ['name'])
  t.strictSame(at('{"rules":[{na|'), [], 'nothing is offered outside of quotation marks')
  t.strictSame(at('{"rules":[{app|', true), ['"approvals"', '"chatApproval"'])
  t.strictSame(at('{"rules":[{"conditions":[{"quan|'), ['quantifier'])
  t.strictSame(at('{"rules":[{"name":"a ] {","conditions":[]},{"mode":"sha|'), ['shadow'])
  t.strictSame(at('{"timez|'), ['timezone'])
  t.strictSame(at('{"name":"|', true), [])
  t.strictSame(at('{"constructor":"|', true), [])
})

t.test('places of the gateway are found in the text', async t => {
  const text = '{\n  "default": "No",\n  "rules": [\n    {"name": "a"},\n    {"conditions": [\n      {"field": 1}]}]}'
  const line = (path: string) => lineOf(text, placeOfPath(text, path))
  const paths = ['default', 'rules[0].name', 'rules[1].conditions[0].field', 'rules[1].x', '']
  t.strictSame(paths.map(line), [2, 4, 6, 5, 1])
  t.equal(syntaxProblem('{}'), undefined)
  for (const [bad, wanted] of [
    ['{\n"a":1,\n}', 3],
    ['{"a"', 1],
    ['', 1],
  ] as const) {
    t.equal(lineOf(bad, syntaxProblem(bad)?.at ?? -1), wanted)
  }
})

t.test('a difference is what changed, and patches the text', async t => {
  const before = Array.from({ length: 40 }, (_, index) => `line ${index}`)
  const after = [...before.slice(0, 5), 'new', ...before.slice(6, 30), ...before.slice(31), 'end']
  const lines = diffLines(before.join('\n'), after.join('\n'))
  const of = (...kinds: readonly string[]) => lines.filter(({ kind }) => kinds.includes(kind)).map(({ text }) => text)
  t.strictSame(of('same', 'removed'), before)
  t.strictSame(of('same', 'added'), after)
  t.strictSame(of('removed'), ['line 5', 'line 30'])
  t.strictSame(patchOf('a.json', lines).split('\n').slice(0, 10), [
    ...['--- a.json', '+++ a.json', '@@ -3,7 +3,7 @@', ' line 2', ' line 3', ' line 4', '-line 5', '+new'],
    ...[' line 6', ' line 7'],
  ])
  t.match(patchOf('a.json', lines), /@@ -28,7 \+28,6 @@[\s\S]*@@ -38,3 \+37,4 @@/)
})

t.test('lists are lists, as far as the gateway reads the same from them', async t => {
  const take = operatorTable.filter(([, { takesList }]) => takesList).map(([name]) => name)
  t.strictSame([...listOperators].sort(), take.sort())
  const shown = (operator: string, value: string) =>
    JSON.parse(documentText({ rules: [{ conditions: [{ any: [{ operator, value }] }] }] })).rules[0].conditions[0]
      .any[0].value
  t.strictSame(shown('in', '["GET","HEAD"]'), ['GET', 'HEAD'])
  t.equal(shown('matches', '["a"]'), '["a"]', 'a pattern')
  t.equal(shown('in', '[9007199254740993]'), '[9007199254740993]', 'a number would lose digits')
  for (const text of ['a,b', '[a']) t.equal(shown('in', text), text)
})
