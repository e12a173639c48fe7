import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createBook } from '../../src/policies/book.ts'
import { readPolicyFolder } from '../../src/policies/files.ts'
import { createClock } from '../fixtures/clock.ts'
import { loadInto } from '../fixtures/load-policies.ts'
import { testdir } from '../fixtures/testdir.ts'

/** Every line that loading this directory gives. */
async function linesOf(directory: string) {
  const { inputs, lines } = await readPolicyFolder(directory)
  const book = createBook({ store: {} as never, language: {}, clock: createClock(), usedBy: () => undefined })
  const all = [...lines, ...(await loadInto(book, inputs))]
  return {
    names: book.list().map(({ document }) => document.name),
    lines: all.map(line => line.replace(directory, '')),
  }
}

t.test('policies are the yaml files of the directory, but for tests, hidden files and folders', async t => {
  const directory = testdir(t, {
    'a.yaml': 'name: a\n',
    'b.yml': 'name: b\n',
    'a.test.yaml': 'policy: a\n',
    '.hidden.yaml': 'name: hidden\n',
    'notes.txt': 'name: notes\n',
    'c.yaml.bak': 'name: c\n',
    sub: { 'd.yaml': 'name: d\n' },
  })
  t.strictSame(await linesOf(directory), { names: ['a', 'b'], lines: [] })
})

t.test('links of a mounted folder are followed', async t => {
  const directory = testdir(t, { data: { 'a.yaml': 'name: a\n' } })
  mkdirSync(join(directory, 'mount'))
  symlinkSync(join(directory, 'data', 'a.yaml'), join(directory, 'mount', 'a.yaml'))
  t.strictSame((await linesOf(join(directory, 'mount'))).names, ['a'])
})

t.test('each mistake comes with its file, line, column and path, all at once', async t => {
  const directory = testdir(t, {
    'a.yaml': [
      'name: a',
      'rules:',
      '  - name: r',
      '    effect: Maybe',
      '    conditions:',
      '      - { field: input.method, operator: eq, value: GET }',
      '      - field: input.metod',
      '        operator: eq',
      '        value: GET',
    ].join('\n'),
    'b.yaml': 'name: b\nrules: []\nname: c\n',
    'c.yaml': '{ name: c, ',
  })
  const { names, lines } = await linesOf(directory)
  t.strictSame(names, [])
  t.match(lines, [
    /^\/b\.yaml:3:1: .*\(E_YAML\)$/,
    /^\/c\.yaml:1:\d+: .*\(E_YAML\)$/,
    /^\/a\.yaml:4:5: rules\[0\]\.effect: .*\(E_EFFECT\)$/,
    /^\/a\.yaml:7:9: rules\[0\]\.conditions\[1\].*did you mean.*\(E_FIELD\)$/,
  ])
})

t.test('a name in two files names both', async t => {
  const directory = testdir(t, { 'a.yaml': 'name: same\n', 'b.yaml': 'description: x\nname: same\n' })
  const { names, lines } = await linesOf(directory)
  t.strictSame(names, [])
  t.equal(lines.length, 1)
  t.match(lines[0], /^\/b\.yaml:2:1: the policy same is also in .*\/a\.yaml:1:1 \(E_NAME\)$/)
})

t.test('bombs, several documents, empty files and values that are no policy are refused', async t => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
    .split('')
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`)
    .join('\n')}\nname: bomb\n`
  const files: Record<string, string> = {
    bomb,
    documents: 'name: a\n---\nname: b\n',
    empty: '',
    list: '- name: a\n',
    text: 'name\n',
    tag: 'name: !secret x\n',
    anchor: 'name: *nowhere\n',
    merge: 'name: a\n<<: { rules: [] }\n',
  }
  for (const [what, text] of Object.entries(files)) {
    const { names, lines } = await linesOf(testdir(t, { 'x.yaml': text }))
    t.strictSame(names, [], what)
    t.match(lines[0], /^\/x\.yaml:\d+:\d+: .*\(E_\w+\)$/, what)
  }
})

t.test('a file that is too large or cannot be read is named', async t => {
  const directory = testdir(t, { 'folder.yaml': {} })
  writeFileSync(join(directory, 'large.yaml'), Buffer.alloc(8_388_609, '#'))
  const { lines } = await linesOf(directory)
  t.match(lines, [/^\/folder\.yaml: cannot be read: /, /^\/large\.yaml: .* at most 8388608 bytes \(E_LIMIT\)$/])
})
