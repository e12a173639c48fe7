import { parseYaml } from '../../src/config/yaml.ts'
import t from '../fixtures/tap.ts'

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

t.test('a bomb of aliases is a problem', async t => {
  const lines = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]`)
  t.match(problems(['a0: &a0 [x]', ...lines].join('\n')), [{ kind: 'too many aliases' }])
})

t.test('keys named like parts of every object are plain keys', async t => {
  const parsed = valid('__proto__: { polluted: true }\nconstructor: 1')
  t.strictSame(Object.keys(parsed.value as object), ['__proto__', 'constructor'])
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
