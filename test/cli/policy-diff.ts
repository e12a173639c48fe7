import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const policy = (paths: string, more = '') => `
name: reader
rules:
  - name: read
    effect: Allow
    conditions:
      - { field: input.origin, operator: eq, value: "https://api.example.com" }
      - { field: input.path, operator: pathMatches, value: ${paths} }
${more}`

const diff = async (...args: readonly string[]) => {
  const shell = fakeShell(['policy', 'diff', ...args])
  return { code: await runCommand(shell), out: shell.printed, err: shell.complained.join('\n') }
}

const folder = testdir(t, {
  'narrow.yaml': policy('["/a"]'),
  'wide.yaml': policy('["/a", "/b|c"]'),
  'held.yaml': policy('["/a"]', '  - { name: rest, effect: Hitl, conditions: [] }\n'),
  'other.yaml': `
name: reader
default: Hitl
rules:
  - name: read
    effect: Allow
    riskExempt: true
    conditions:
      - { field: input.origin, operator: eq, value: "https://api.example.com" }
      - { field: input.path, operator: pathMatches, value: ["/a"] }
  - name: writes
    effect: Allow
    priority: 1
    conditions:
      - { field: agent.name, operator: eq, value: red }
      - { field: input.body.kind, operator: eq, value: note }
`,
  'wrong.yaml': 'name: [',
})
const file = (name: string) => `${folder}/${name}.yaml`

t.test('a wider policy is shown with a request, and fails when it must not be wider', async t => {
  const { code, out } = await diff(file('narrow'), file('wide'), '--fail-on', 'wider')
  t.equal(code, 3)
  t.strictSame(out, [
    'wider      read (Allow)',
    '0 rules are the same',
    'Deny -> Allow  GET https://api.example.com/b|c  (before: the default, now: read)',
    'The new policy is milder for the requests above.',
  ])
  t.equal((await diff(file('narrow'), file('wide'))).code, 0)
  t.equal((await diff(file('wide'), file('narrow'), '--fail-on', 'wider')).code, 0)
  t.equal((await diff(file('narrow'), file('held'), '--fail-on', 'wider')).code, 3)
})

t.test('the result is also JSON, and tables in Markdown', async t => {
  const { out } = await diff(file('narrow'), file('wide'), '--json')
  t.match(JSON.parse(out.join('')), {
    wider: 'shown',
    rules: [{ difference: 'wider' }],
    examples: [{ after: 'Allow' }],
  })
  const markdown = (await diff(file('narrow'), file('wide'), '--markdown')).out
  t.ok(markdown.includes('| `read` | `Allow` | `wider` |'), markdown.join('\n'))
  t.ok(
    markdown.some(line => line.includes('/b\\|c')),
    'a bar does not end a cell',
  )
})

t.test('what changed beside conditions, the default, and what an example rests on are named', async t => {
  const { out } = await diff(file('narrow'), file('other'))
  t.ok(out.includes('changed    read (Allow): riskExempt (default) -> true'), out.join('\n'))
  t.ok(out.includes('default    Deny -> Hitl'))
  t.ok(out.some(line => /^Deny -> Allow .*"kind":"note".* by an agent with .*red.*now: writes\)$/.test(line)))
  t.ok(out.some(line => /^Deny -> Hitl .*\(before: the default, now: the default\)$/.test(line)))
  const back = (await diff(file('held'), file('narrow'))).out
  t.ok(back.includes('removed    rest (Hitl)'), back.join('\n'))
  const markdown = (await diff(file('narrow'), file('other'), '--markdown')).out
  t.ok(markdown.includes('| `(default)` | `Hitl` | `was Deny` |'), markdown.join('\n'))
  const same = await diff(file('wide'), file('wide'), '--markdown')
  t.strictSame(same, { code: 0, out: ['The new policy is milder for no request.'], err: '' })
})

t.test('a command line that cannot be meant, and a policy with mistakes, are explained', async t => {
  for (const args of [[], [file('wide')], [file('wide'), file('wide'), '--fail-on', 'x']])
    t.equal((await diff(...args)).code, 2)
  t.match(await diff(file('wide'), file('wrong')), { code: 1, err: /wrong\.yaml/ })
})
