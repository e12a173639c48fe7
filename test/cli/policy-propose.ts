import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { runCommand } from '../../src/cli/commands.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const propose = async (...args: readonly string[]) => {
  const shell = fakeShell(['policy', 'propose', ...args])
  return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}

const agentId = '00000000-0000-4000-8000-000000000001'
const usual = { agentId, decision: 'Allow', status: 200, origin: 'https://api.example.com', method: 'GET', bytesIn: 0 }
const lines = (...all: object[]): string => all.map(line => `${JSON.stringify({ ...usual, ...line })}\n`).join('')
const day = (number: number) => ({ time: `2026-01-0${number}T10:00:00Z` })

const access = lines(
  { path: '/users/1', ...day(1) },
  { path: '/users/2', ...day(1) },
  { path: '/users/3', ...day(2) },
  { path: '/users/3', ...day(2), status: 404 },
  { path: '/admin', ...day(2), decision: 'Deny', status: 403 },
  { path: '/notes', ...day(2), method: 'POST', bytesIn: 20 },
  { path: '/other', ...day(2), agentId: '00000000-0000-4000-8000-000000000002' },
)

t.test('an access log gives rules for requests without a body, with their evidence', async t => {
  const folder = testdir(t, { log: `not JSON\n${access}` })
  const { code, out, err } = await propose('--log', `${folder}/log`, '--agent', agentId)
  t.equal(code, 0)
  t.match(out, '# seen 3 times on 2 days, 2026-01-01 to 2026-01-02, by 1 agents')
  const { rules, ...head } = parse(out)
  t.match(head, { name: 'proposed', default: 'Hitl' })
  t.equal(rules.length, 1)
  t.strictSame(
    rules[0].conditions.map(({ field, value }: { field: string; value: unknown }) => [field, value]),
    [
      ['agent.id', agentId],
      ['input.method', 'GET'],
      ['input.origin', 'https://api.example.com'],
      ['input.path', ['/users/{id:int}']],
      ['input.bodyInfo.size', '0'],
    ],
  )
  t.match(err, 'requests: 3 used, 3 allowed, 0 held')
  t.match(err, 'left out: 1 x a body that was not recorded')
  t.match(err, 'left out: 1 x not answered with 2xx or 3xx')
})

t.test('whole requests give rules with bodies', async t => {
  const request = { method: 'POST', url: 'https://api.example.com/notes', body: { text: 'x' } }
  const log = lines(...[1, 1, 2].map(number => ({ request, agent: { id: agentId }, ...day(number) })))
  const folder = testdir(t, { log })
  const { code } = await propose('--log', `${folder}/log`, '--name', 'notes', '--output', `${folder}/new.yaml`)
  t.equal(code, 0)
  const { name, rules } = parse(readFileSync(`${folder}/new.yaml`, 'utf8'))
  t.equal(name, 'notes')
  const body = { field: 'input.body.@keys', operator: 'in', value: ['text'], quantifier: 'all' }
  t.strictSame(rules[0].conditions.at(-1), body)
  t.equal(rules[0].effect, 'Allow')
})

t.test('on the first day nothing is allowed, and what to do is said', async t => {
  const said = 'no request is allowed yet: propose again after another day'
  const first = testdir(t, { log: lines({ path: '/users/1', ...day(1) }) })
  t.match((await propose('--log', `${first}/log`)).err, said)
  t.notMatch((await propose('--log', `${testdir(t, { log: access })}/log`)).err, said)
})

t.test('a policy is narrowed to what was seen', async t => {
  const policy = `
name: reader
rules:
  - { name: read, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }
`
  const folder = testdir(t, { log: access, 'p.yaml': policy })
  const { code, out, err } = await propose('--log', `${folder}/log`, '--policy', `${folder}/p.yaml`)
  t.equal(code, 0)
  t.match(err, 'look at https://api.example.com: seen on one day only', 'by the second agent')
  const { name, rules } = parse(out)
  t.equal(name, 'reader')
  t.strictSame(
    rules.map((rule: { name: string; effect: string }) => `${rule.name} ${rule.effect}`),
    ['read-seen Allow', 'read-not-seen Hitl'],
  )
})

t.test('what the lint says of a proposal is printed, and a priority that cannot be doubled is refused', async t => {
  const policy = (priority: number) => `
name: reader
default: Allow
rules:
  - { name: read, effect: Allow, priority: ${priority}, conditions: [{ field: input.host, operator: eq, value: a.example }] }
  - { name: late, effect: Deny, conditions: [{ field: input.host, operator: eq, value: a.example }] }
`
  const folder = testdir(t, { log: access, 'p.yaml': policy(1), 'high.yaml': policy(Number.MAX_SAFE_INTEGER) })
  const { code, err } = await propose('--log', `${folder}/log`, '--policy', `${folder}/p.yaml`)
  t.equal(code, 0)
  t.match(err, /^rules\[\d\]: .* \(W_[A-Z_]+\)$/m)
  const high = await propose('--log', `${folder}/log`, '--policy', `${folder}/high.yaml`)
  t.match(high, { code: 1, err: /priority of the policy is too large/ })
})

t.test('a command line that cannot be meant is explained', async t => {
  const folder = testdir(t, { log: '', 'p.yaml': 'name: [' })
  const log = `${folder}/log`
  for (const args of [
    [],
    ['--log', log, '--since', 'yesterday'],
    ['--log', log, '--unseen', 'Allow'],
    ['--log', log, '--policy', 'x', '--name', 'y'],
    ['--log', log, '--tests', 'x'],
    ['--policy', 'x'],
  ])
    t.equal((await propose(...args)).code, 2, args.join(' '))
  t.equal((await propose('--log', `${folder}/none`)).code, 1)
  t.equal((await propose('--log', log, '--policy', `${folder}/p.yaml`)).code, 1)
  t.equal((await propose('--log', log, '--policy', `${folder}/none.yaml`)).code, 1)
})
