/** The commands `budget list`, `show` and `raise`, against a running gateway. */
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runToEnd } from '../fixtures/process.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const origin = await startOrigin(t)
const gateway = await startGateway(t, {
  alone: 'counts of one gateway are compared',
  config: {
    Budgets: [{ Name: 'calls', Unit: 'Calls', Limit: 2, Per: 'Month', Owners: ['spenders'] }, { Name: 'counted' }],
  },
})
const env = { SYSTEM__SERVER__HTTP__PORT: String(gateway.port) }
const run = (...args: string[]) => runToEnd(t, ['budget', ...args], { cwd: gateway.directory, env })
const agent = await gateway.agent({ name: 'spender', ownerId: 'spenders' })
for (let calls = 0; calls < 3; calls++) await gateway.proxy(agent.token, `${origin.url}/x`)

t.test('lists budgets, and who has one', async t => {
  await eventually(
    async () => JSON.parse((await gateway.manage('GET', '/budgets/calls')).text),
    ({ items }) => items[0]?.calls === 2,
  )
  const [list, show] = await Promise.all([run('list'), run('show', 'calls')])
  t.match(list, {
    code: 0,
    err: '',
    out: /^BUDGET {2}.*\ncalls +Agent +2 calls +Month +2 calls +2 +1 +.*\ncounted +Agent +- /,
  })
  t.match(show, { code: 0, out: new RegExp(`\n${agent.id} +spender +2 calls +0 calls +2 calls +0 calls +2\n`) })
})

t.test('raises a budget once, and prints JSON for programs', async t => {
  const raised = await run('raise', 'calls', agent.id, '3', '--comment', 'tests', '--json')
  t.match(JSON.parse(raised.out), { ok: true, raised: 3, limit: 2, spent: 2, holderName: 'spender' })
  t.match(await run('raise', 'calls', agent.id, '100'), {
    code: 1,
    out: '',
    err: /answered 400 to POST \/budgets\/calls\/raises\. .*\n {2}amount: must be/,
  })
  t.match(await run('show', 'none'), { code: 1, out: '', err: /answered 404 to GET \/budgets\/none\. / })
  t.match(await run('raise', 'calls', agent.id, 'many'), { code: 2, err: /must be a number above 0/ })
})

/** The same in this process, at the address of a server. */
async function runAt(url: string, ...args: string[]) {
  const folder = testdir(t, { 'gateway.yaml': '{}' })
  const shell = fakeShell(['budget', ...args, '--at', url, '--config', `${folder}/gateway.yaml`])
  return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}

t.test('what is left out is asked for', async t => {
  t.match(await runAt(gateway.url, 'show'), { code: 2, err: /name a budget/ })
  t.match(await runAt(gateway.url, 'raise', 'calls', agent.id), {
    code: 2,
    err: /name a budget, a holder and an amount/,
  })
})

t.test('budgets and holders are JSON for programs, and a budget without a limit has a dash', async t => {
  const [list, show, counted] = await Promise.all([run('list', '--json'), run('show', 'calls', '--json'), run('list')])
  t.match(JSON.parse(list.out), { ok: true, budgets: [{ name: 'calls' }, { name: 'counted', limit: null }] })
  t.match(JSON.parse(show.out), { ok: true, items: [{ holder: agent.id }], totalCount: 1 })
  t.match(counted.out, /\ncounted +Agent +- +Day +0\.00 USD/)
})
