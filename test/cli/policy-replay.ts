import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const policy = `
name: shop
rules:
  - { name: get, priority: 2, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }
  - { name: small, effect: Allow, conditions: [{ field: input.body.amount, operator: lt, value: 100 }] }
`

const replay = async (folder: string, ...more: string[]) => {
  const shell = fakeShell(['policy', 'replay', '--policy', `${folder}/new.yaml`, '--log', `${folder}/log`, ...more])
  return { code: await runCommand(shell), out: shell.printed, err: shell.complained }
}

const lines = (...all: object[]): string => all.map(line => `${JSON.stringify(line)}\n`).join('')

t.test('logged requests are decided again, and each change is printed with its count', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t)
  await gateway.policy({ name: 'shop', default: 'Allow' })
  const { token } = await gateway.agent({ policyName: 'shop' })
  const { token: other } = await gateway.agent()
  const calls: [string, RequestInit][] = [
    ['/items?a=1', {}],
    ['/items/1', { method: 'DELETE' }],
    ['/items/1', { method: 'DELETE' }],
    ['/orders', { method: 'POST', body: '{"amount":5}' }],
  ]
  for (const [path, init] of calls) await (await gateway.proxy(token, origin.url + path, init)).text()
  await (await gateway.proxy(other, `${origin.url}/other`, { method: 'DELETE' })).text()
  await gateway.close()

  const folder = testdir(t, { 'new.yaml': policy, log: `not JSON\n${lines(...gateway.log)}` })
  t.strictSame(await replay(folder), {
    code: 0,
    out: [
      `      2 x  Allow -> Deny  DELETE ${origin.url}/items/1`,
      '2 changed, 1 the same, 1 depend on the body, 0 not understood',
    ],
    err: [],
  })
  const all = await replay(folder, '--all')
  t.ok(all.out.includes(`      1 x  Allow -> Deny  DELETE ${origin.url}/other`))
})

t.test('a line with the whole request is decided with its body', async t => {
  const request = (amount: number) => ({ method: 'POST', url: 'https://shop.example/', body: { amount } })
  const log = lines(
    { policy: 'shop', decision: 'Deny', request: request(5) },
    { policy: 'shop', decision: 'Allow', request: request(500) },
    { policy: 'shop', decision: 'Allow', request: { url: 'nowhere' } },
  )
  const { out } = await replay(testdir(t, { 'new.yaml': policy, log }))
  t.strictSame(out, [
    '      1 x  Deny -> Allow  POST https://shop.example/',
    '      1 x  Allow -> Deny  POST https://shop.example/',
    '      1 x  Allow -> invalid_target  GET nowhere',
    '3 changed, 0 the same, 0 depend on the body, 0 not understood',
  ])
})

t.test('the policy in force changes nothing, whatever decided beside it', async t => {
  const log = lines(
    { policy: 'shop', decision: 'Hitl', source: 'risk', method: 'GET', origin: 'https://a.example', path: '/' },
    { policy: 'shop', decision: 'Deny', source: 'global', method: 'GET', origin: 'https://a.example', path: '/' },
    { policy: 'shop', decision: 'Allow', source: 'rule', method: 'DELETE', origin: 'https://a.example', path: '/' },
    {
      policy: 'shop',
      decision: 'Deny',
      source: 'rule',
      method: 'POST',
      origin: 'https://a.example',
      path: '/',
      bytesIn: 9,
    },
  )
  const folder = testdir(t, {
    'new.yaml': policy,
    'stricter.yaml': 'name: shop\ndefault: Deny\n',
    log,
    'gateway.yaml': 'Policy: { Directory: policies }',
    policies: { 'shop.yaml': policy },
  })
  const config = ['--config', `${folder}/gateway.yaml`]
  const { out } = await replay(folder, ...config)
  t.strictSame(out, ['0 changed, 3 the same, 1 depend on the body, 0 not understood'])
  const stricter = fakeShell([
    'policy',
    'replay',
    '--policy',
    `${folder}/stricter.yaml`,
    '--log',
    `${folder}/log`,
    ...config,
  ])
  t.equal(await runCommand(stricter), 0)
  t.strictSame(stricter.printed, [
    '      1 x  Hitl -> Deny  GET https://a.example/',
    '1 changed, 3 the same, 0 depend on the body, 0 not understood',
  ])
})

t.test('a policy or log that cannot be used is reported in one line', async t => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ log: '' }, /new\.yaml cannot be read \(ENOENT\)/],
    [{ 'new.yaml': policy }, /log cannot be read \(ENOENT\)/],
    [{ 'new.yaml': 'name: [', log: '' }, /new\.yaml:1:\d+: .*E_YAML/],
    [{ 'new.yaml': policy.replace('lt', 'less'), log: '' }, /new\.yaml:\d+:\d+: .*E_OPERATOR/],
  ]
  for (const [files, message] of cases) {
    const { code, out, err } = await replay(testdir(t, files))
    t.strictSame([code, out], [1, []])
    t.match(err[0], message)
  }
  const shell = fakeShell(['policy', 'replay', '--log', 'x'])
  t.equal(await runCommand(shell), 2)
})
