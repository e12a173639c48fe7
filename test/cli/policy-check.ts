import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const sound =
  'name: sound\nrules:\n  - { name: get, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }\n'
const doubtful = 'name: doubtful\ndefault: Allow\n'
const wrong = sound.replace('eq', 'equals?').replace('sound', 'wrong')

const check = async (...args: string[]) => {
  const shell = fakeShell(['policy', 'check', ...args])
  return { code: await runCommand(shell), out: shell.printed, err: shell.complained }
}

t.test('mistakes are named with their place, and are a failure', async t => {
  const folder = testdir(t, { 'wrong.yaml': wrong, 'broken.yaml': 'name: [', 'sound.yaml': sound })
  const files = ['wrong.yaml', 'broken.yaml', 'sound.yaml', 'missing.yaml'].map(name => `${folder}/${name}`)
  const { code, out, err } = await check(...files)
  t.equal(code, 1)
  t.match(err.join('\n'), /wrong\.yaml:3:\d+: .*E_OPERATOR/)
  t.match(err.join('\n'), /broken\.yaml:1:\d+: .*E_YAML/)
  t.match(err.join('\n'), /missing\.yaml: cannot be read: ENOENT/)
  t.strictSame(out, ['policies: 1, mistakes: 3, warnings: 0'])
})

t.test('warnings are named with their place, and are a failure with --strict only', async t => {
  const file = `${testdir(t, { 'doubtful.yaml': doubtful })}/doubtful.yaml`
  const warning = `${file}:2:1: default: the default is Allow: requests that no rule matches pass (W_CATCH_ALL)`
  const out = [warning, 'policies: 1, mistakes: 0, warnings: 1']
  t.strictSame(await check(file), { code: 0, out, err: [] })
  t.strictSame(await check(file, '--strict'), { code: 1, out, err: [] })
})

t.test('a silenced warning is printed with its reason, and is no failure with --strict', async t => {
  const host = '{ field: input.host, operator: eq, value: a.example }'
  const silence = '[{ code: W_ANY_ORIGIN, reason: the printers speak http }]'
  const text = `name: lab\nrules:\n  - { name: r, effect: Allow, silence: ${silence}, conditions: [${host}] }\n`
  const file = `${testdir(t, { 'lab.yaml': text })}/lab.yaml`
  const { code, out } = await check(file, '--strict')
  t.equal(code, 0)
  t.match(
    out[0],
    /lab\.yaml:3:5: rules\[0\]: also allows plain http .* \(W_ANY_ORIGIN, silenced: the printers speak http\)$/,
  )
  t.strictSame(out.slice(1), ['policies: 1, mistakes: 0, warnings: 0, silenced: 1'])
})

t.test('without files, the policies of the configuration are checked', async t => {
  const text = `Policies: [{ name: inline, default: Allow }]\n`
  const folder = testdir(t, { 'gateway.yaml': text, policies: { 'sound.yaml': sound } })
  const { code, out } = await check('--config', `${folder}/gateway.yaml`)
  t.equal(code, 0)
  t.match(out[0], /Policies\[0\].*W_CATCH_ALL/)
  t.equal(out[1], 'policies: 2, mistakes: 0, warnings: 1')
})

t.test('the shipped policies have no mistake, and no warning that they do not silence', async t => {
  const { code, out } = await check('--strict')
  t.equal(code, 0, out.join('\n'))
  t.match(out.at(-1), /^policies: \d+, mistakes: 0, warnings: 0(, silenced: 1)?$/)
})

t.test('warnings that would take too long to look for are named', async t => {
  const rules = Array.from({ length: 200 }, (_, n) => ({
    ...{ name: `r${n}`, effect: n < 130 ? 'Hitl' : 'Allow', priority: n < 130 ? 1 : 0 },
    conditions: [{ field: `input.body.${n < 130 ? 'amount' : 'other'}`, operator: 'gt', value: n }],
  }))
  const file = `${testdir(t, { 'large.json': JSON.stringify({ name: 'large', rules }) })}/large.json`
  const { out } = await check(file)
  t.match(
    out.at(-2),
    /^.*large\.json:1:\d+: not looked for in the last \d+ rules, which takes too long: W_MISSING_PASSES$/,
  )
  const { out: json } = await check(file, '--json')
  t.match(JSON.parse(json[0] ?? '').unfinished, [{ place: /large\.json/, code: 'W_MISSING_PASSES', rules: Number }])
})

t.test('with --json mistakes and warnings are one line of JSON', async t => {
  const folder = testdir(t, { 'doubtful.yaml': doubtful, 'wrong.yaml': wrong })
  const { code, out, err } = await check(`${folder}/doubtful.yaml`, `${folder}/wrong.yaml`, '--json')
  t.strictSame([code, out.length, err], [1, 1, []])
  const place = `${folder}/doubtful.yaml:2:1`
  t.match(JSON.parse(out[0] ?? ''), {
    ok: false,
    policies: 1,
    mistakes: [/wrong\.yaml:3:\d+: .*E_OPERATOR/],
    warnings: [{ place, code: 'W_CATCH_ALL', path: 'default', rule: null, message: /^the default is Allow/ }],
    silenced: [],
  })
})

t.test('--json with --strict is not ok when there is a warning', async t => {
  const file = `${testdir(t, { 'doubtful.yaml': doubtful })}/doubtful.yaml`
  const { code, out } = await check(file, '--json', '--strict')
  t.match([code, JSON.parse(out[0] ?? '')], [1, { ok: false, mistakes: [] }])
})

t.test('deceptive characters are JSON escapes in it', async t => {
  const file = `${testdir(t, { 'doubtful.yaml': doubtful })}/\u202edoubtful.yaml`
  const { out } = await check(file, '--json')
  t.match(out[0], '\\u202edoubtful.yaml')
  t.ok(JSON.parse(out[0] ?? '').mistakes[0].startsWith(file))
})
