import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const suite = (decision: string) =>
  `policy: two\ntests: [{ name: the default, request: { url: "https://a.example/" }, expect: { decision: ${decision} } }]\n`

t.test('a folder of policies is put in force by one command', async t => {
  const gateway = await startGateway(t)
  const folder = testdir(t, {
    'one.yaml': 'name: one\ndefault: Allow\n',
    'two.yml': 'name: two\n',
    'two.test.yaml': suite('Deny'),
    'notes.txt': 'no policy',
  })
  const run = (args: readonly string[], env = {}) =>
    runToEnd(t, ['policy', 'push', ...args, '--at', gateway.url], { cwd: gateway.directory, env })
  const token = { AGENT_GATEWAY_TOKEN: gateway.adminToken }
  t.match(await run([folder], token), { code: 0, out: 'created   one\ncreated   two\n', err: '' })
  t.match(JSON.parse((await gateway.manage('GET', '/policies/one')).text), { default: 'Allow', source: 'api' })
  t.match(await run([folder, '--prune']), { code: 0, out: 'unchanged one\nunchanged two\n' }, 'as the first admin')

  const failing = testdir(t, { 'two.yml': 'name: two\ndescription: new\n', 'two.test.yaml': suite('Allow') })
  t.match(await run([failing], token), {
    code: 1,
    err: /nothing was pushed:\n {2}\S+two\.test\.yaml:2:\d+: the default: /,
  })
  t.match(JSON.parse((await gateway.manage('GET', '/policies/two')).text), { description: '' }, 'as before')

  const wrong = testdir(t, { 'one.yaml': 'name: one\ndefault: Perhaps\n' })
  t.match(await run([wrong], token), {
    code: 1,
    err: /answered 400 to PUT \/policies\. .*\n {2}\S+one\.yaml:2:\d+: default must be Allow/,
  })
  t.match(await run([testdir(t, {})], token), { code: 1, err: /contains no policy files/ })
  t.match(await run([`${wrong}/nowhere`], token), { code: 1, err: /cannot be read \(ENOENT\)/ })
  const file = run([`${wrong}/one.yaml`], token)
  t.match(await file, { code: 1, err: /one\.yaml cannot be read \(ENOTDIR\)\. Name a folder/ })
  t.match(await run([], token), { code: 2, err: /FOLDER is missing/ })
  t.match(await run([folder], { AGENT_GATEWAY_TOKEN: 'other' }), { code: 1, err: /answered 401/ })
})
