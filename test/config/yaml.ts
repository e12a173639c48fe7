import t from 'tap'
import { parseYaml } from '../../src/config/yaml.ts'

const problems = (text: string) => {
  const parsed = parseYaml(text)
  return 'problems' in parsed ? parsed.problems : []
}

const valid = (text: string) => {
  const parsed = parseYaml(text)
  if ('problems' in parsed) throw new Error(parsed.problems.map(({ message }) => message).join('\n'))
  return parsed
}

t.test('a part is found by the keys that lead to it, else what stands around it', async t => {
  const parsed = valid('rules:\n  - name: a\n    when: &w [1, 2]\n  - *w\n')
  t.strictSame(parsed.locate(['rules']), { line: 1, column: 1 })
  t.strictSame(parsed.locate(['rules', '0', 'when']), { line: 3, column: 5 })
  t.strictSame(parsed.locate(['rules', '0', 'when', '1']), { line: 3, column: 18 })
  t.strictSame(parsed.locate(['rules', '0', 'missing', 'x']), { line: 2, column: 5 })
  t.strictSame(parsed.locate([]), { line: 1, column: 1 })
})

t.test('an empty document is null and has a place', async t => {
  const parsed = valid('')
  t.equal(parsed.value, null)
  t.strictSame(parsed.locate(['a']), { line: 1, column: 1 })
})

t.test('a key given twice, an unknown tag, a second document and an unknown alias are problems', async t => {
  const cases: [string, object][] = [
    ['a: 1\na: 2', { line: 2, column: 1, kind: 'duplicate key' }],
    ['a: !no 1', { line: 1, column: 4, kind: 'tag resolve failed' }],
    ['a: 1\n---\nb: 2', { kind: 'multiple docs', message: 'a file must contain one document; split it at ---' }],
    ['a: 1\nb: [*no]', { line: 2, column: 5, kind: 'unknown alias' }],
    ['[a]: 1', { kind: 'non string key' }],
  ]
  for (const [text, problem] of cases) t.match(problems(text), [problem], text)
})

t.test('text that needs quotes is one mistake, which says what to write', async t => {
  const line = '- { field: input.path, operator: pathMatches, value: /repos/{owner}/{repo} }\n'
  const many = `name: a\nrules:\n${line.repeat(60)}`
  t.match(problems(many), [{ line: 3, message: 'this text must be in quotes: "/repos/{owner}/{repo}"' }])
  const cases: [string, string][] = [
    ['{ v: /v1/{id}, b: 2 }', '"/v1/{id}"'],
    ['{ v: {id}/b }', '"{id}/b"'],
    ['[ /v1/{id}, b ]', '"/v1/{id}"'],
    ['{ v: a, w: /a,b/{c} }', '"/a,b/{c}"'],
    ['{ v: [a-z]+ } # a word', '"[a-z]+"'],
    ['{ v: ^[a-z]{2,3}$ }', '"^[a-z]{2,3}$"'],
    ['{ v: ^\\d[a-z] }', "'^\\d[a-z]'"],
    ['{ v: a"b[c]\'d }', `'a"b[c]''d'`],
    ['{ field: input.body.items[*].price, value: 1 }', '"input.body.items[*].price"'],
    ['{ v: @abc }', '"@abc"'],
    ['{ v: *.example.com }', '"*.example.com"'],
    ['{ v: !abc }', '"!abc"'],
    ['v: {id}/b\nw: 1', '"{id}/b"'],
  ]
  for (const [text, written] of cases) {
    const [problem, ...more] = problems(text)
    t.ok(problem?.message.endsWith(` must be in quotes: ${written}`), `${text}   ${problem?.message}`)
    t.strictSame(more, [], text)
    t.notMatch(problem?.kind, /[{}[\]*@!]/, 'the kind repeats nothing')
  }
})

t.test('a long text is not repeated', async t => {
  t.match(problems(`{ v: ${'a'.repeat(130)}{b} }`), [{ message: /^Unexpected/ }])
})

t.test('only the first mistake of syntax is reported, and before it those of meaning', async t => {
  t.match(problems('a: 1\na: 2\nb: { c: [\nd: }\ne: {{}}\ne: 1\n'), [{ kind: 'duplicate key' }, { line: 4 }])
})

t.test('a pattern with a backslash in double quotes has the remedy', async t => {
  t.match(problems('a: "^\\d"'), [{ message: /written twice; in single quotes it stands for itself/ }])
})

t.test('many unknown aliases on one long line are found in a moment', async t => {
  t.equal(problems(`[${'*a,'.repeat(20_000)}]`).length, 20_000)
})

t.test('a bomb of aliases is a problem', async t => {
  const lines = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]`)
  t.match(problems(['a0: &a0 [x]', ...lines].join('\n')), [{ kind: 'too many aliases' }])
})

t.test('keys named like parts of every object are plain keys', async t => {
  const parsed = valid('__proto__: { polluted: true }\nconstructor: 1')
  t.strictSame(Object.keys(parsed.value as object), ['__proto__', 'constructor'])
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
