import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const policy = `
name: shop
rules:
  - { name: get, effect: Allow, conditions: [{ field: input.method, operator: eq, value: GET }] }
  - { name: refund, effect: Hitl, conditions: [{ field: input.body.amount, operator: gt, value: 100 }] }
`
const good = `
policy: shop
tests:
  - { name: reads, request: { url: "https://shop.example/" }, expect: { decision: Allow, rule: get, phase: head } }
`
const refund = `  - name: asks
    request: { method: POST, url: "https://shop.example/", body: { amount: 101 } }
    expect: { decision: Hitl, rule: refund }
`

const run = async (folder: string, ...more: string[]) => {
  const shell = fakeShell(['policy', 'test', folder, ...more])
  const code = await runCommand(shell)
  return { code, out: shell.printed, err: shell.complained }
}

t.test('the shipped policies pass their tests, and every rule of them is matched by one', async t => {
  const { code, out, err } = await run('policies', '--coverage')
  t.strictSame([code, err], [0, []], out.join('\n'))
  t.match(out.at(-1), /^\d+ passed, 0 failed$/)
})

t.test('a file in the place of the folder is told, without a stack', async t => {
  const folder = testdir(t, { 'shop.yaml': policy })
  const { code, err } = await run(`${folder}/shop.yaml`)
  t.equal(code, 1)
  t.match(err, [/shop\.yaml cannot be read \(ENOTDIR\)\. Name a folder of policies and their tests\.$/])
})

t.test('each test is named, and the last line counts them', async t => {
  const { code, out } = await run(testdir(t, { 'shop.yaml': policy, 'shop.test.yaml': good }))
  t.equal(code, 0)
  t.strictSame(out, ['ok      shop: reads', '1 passed, 0 failed'])
})

t.test('a test that fails is printed with its place, what was expected, what came and why', async t => {
  const more = `  - { name: big, request: { method: POST, url: "https://shop.example/", body: { amount: 5 } },
      expect: { decision: Hitl, rule: refund } }\n`
  const folder = testdir(t, { 'shop.yaml': policy, 'shop.test.yaml': good + more })
  const { code, out } = await run(folder)
  t.equal(code, 1)
  t.strictSame(out, [
    'ok      shop: reads',
    `FAILED  shop: big (${folder}/shop.test.yaml:5:5)`,
    '        decision: expected Hitl, was Deny',
    '        rule: expected refund, was null',
    '        the reason: no rule of policy "shop" matched: default Deny',
    '1 passed, 1 failed',
  ])
})

t.test('with --coverage, rules that no test matches are listed and are a failure', async t => {
  const { code, out } = await run(testdir(t, { 'shop.yaml': policy, 'shop.test.yaml': good }), '--coverage')
  t.equal(code, 1)
  t.strictSame(out.slice(1), ['no test matches  shop: refund', '1 passed, 0 failed'])
})

t.test('with --coverage, a policy of the folder without tests is named, and is a failure', async t => {
  const files = {
    'gateway.yaml': 'Policies: [{ name: inline, rules: [] }]\n',
    policies: {
      'shop.yaml': policy,
      'none.yaml': 'name: none\nrules: []\n',
      'all.yaml': policy.replace('shop', 'all'),
    },
  }
  const folder = testdir(t, { ...files, policies: { ...files.policies, 'shop.test.yaml': good + refund } })
  const args = [`${folder}/policies`, '--config', `${folder}/gateway.yaml`] as const
  t.equal((await run(...args)).code, 0)
  const { code, out } = await run(...args, '--coverage')
  t.strictSame([code, out.slice(2)], [1, ['no tests         all', 'no tests         none', '2 passed, 0 failed']])
  const unmatched = [
    { policy: 'all', rules: ['refund', 'get'] },
    { policy: 'none', rules: [] },
  ]
  t.match(JSON.parse((await run(...args, '--coverage', '--json')).out[0] ?? ''), { ok: false, unmatched })
})

t.test('a test that fails by a rule of many conditions shows each that held', async t => {
  const post = '{ field: input.method, operator: eq, value: GET }'
  const group = (count: number) => `{ all: [${new Array(count).fill(post).join(', ')}] }`
  const many = (count: number) => policy.replace(post, `${group(count - 1)}, ${post}`)
  const wrong = good.replace('Allow', 'Deny')
  const held = async (count: number) => {
    const { out } = await run(testdir(t, { 'shop.yaml': many(count), 'shop.test.yaml': wrong }))
    return out.filter(line => line.includes('held: ')).map(line => line.trim())
  }
  t.strictSame(await held(3), [])
  t.strictSame(await held(9), new Array(9).fill('held: input.method eq "GET"'))
})

t.test('mistakes in the files are printed with their place', async t => {
  const cases: [Record<string, string>, RegExp][] = [
    [
      { 'shop.yaml': policy, 'a.test.yaml': good.replace('expect', 'expcet') },
      /a\.test\.yaml:4:\d+: tests\[0\]\.expcet: must not be given: unknown field, did you mean expect\? \(E_TEST\)/,
    ],
    [{ 'shop.yaml': policy, 'a.test.yaml': good.replace('Allow', 'Maybe') }, /tests\[0\]\.expect\.decision: must be/],
    [{ 'shop.yaml': policy, 'a.test.yaml': 'policy: [' }, /a\.test\.yaml:1:\d+: .*\(E_YAML\)/],
    [
      { 'shop.yaml': policy, 'a.test.yaml': good.replace('policy: shop', 'policy: store') },
      /a\.test\.yaml:2:1: there is no policy store/,
    ],
    [{ 'shop.yaml': policy.replace('Hitl', 'Maybe'), 'a.test.yaml': good }, /shop\.yaml:\d+:\d+: .*E_EFFECT/],
    [{ 'shop.yaml': policy }, /there is no \*\.test\.yaml here/],
  ]
  for (const [files, message] of cases) {
    const { code, err } = await run(testdir(t, files))
    t.equal(code, 1)
    t.match(err.join('\n'), message)
  }
})

t.test('a request that cannot be is a failed test', async t => {
  const files = { 'shop.yaml': policy, 'a.test.yaml': good.replace('https://shop.example/', 'nowhere') }
  const { code, out } = await run(testdir(t, files))
  t.equal(code, 1)
  t.match(out[1], /must begin with http:/)
})

t.test('a gateway does not start, nor reload, with a policy that fails its own tests', async t => {
  const wrong = good.replace('Allow, rule: get', 'Deny')
  const folder = testdir(t, { 'gateway.yaml': '', policies: { 'shop.yaml': policy, 'shop.test.yaml': wrong } })
  const shell = fakeShell(['serve', '--config', `${folder}/gateway.yaml`], { SYSTEM__SERVER__HTTP__PORT: '0' })
  t.equal(await runCommand(shell), 1)
  t.match(shell.complained[0], /shop\.test\.yaml:4:5: reads: decision: expected Deny, was Allow, .*\(E_TEST\)/)
})

t.test('with --json the tests and their faults are one line of JSON', async t => {
  const more = `  - { name: posts, request: { method: POST, url: "https://shop.example/" }, expect: { decision: Allow } }\n`
  const other = good.replace('policy: shop', 'policy: store')
  const files = { 'shop.yaml': policy, 'shop.test.yaml': good + more, 'store.test.yaml': other }
  const { code, out, err } = await run(testdir(t, files), '--json', '--coverage')
  t.strictSame([code, out.length, err], [1, 1, []])
  t.match(JSON.parse(out[0] ?? ''), {
    ok: false,
    passed: 1,
    failed: 2,
    mistakes: [/store\.test\.yaml:2:1: there is no policy store$/],
    tests: [
      { policy: 'shop', name: 'reads', place: /shop\.test\.yaml:4:5$/, faults: [] },
      { policy: 'shop', name: 'posts', faults: [/^decision: expected Allow/, /^the reason/] },
      { policy: 'store', name: 'reads', faults: ['there is no policy store'] },
    ],
    unmatched: [{ policy: 'shop', rules: ['refund'] }],
  })
})
