/** The commands `budget list`, `show` and `raise`, against a running gateway. */
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runToEnd } from '../fixtures/process.ts'

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
  t.match(await run('raise', 'calls', agent.id, '100'), { code: 1, out: '', err: /answered 400\. amount must be/ })
  t.match(await run('show', 'none'), { code: 1, out: '', err: /answered 404/ })
  t.match(await run('raise', 'calls', agent.id, 'many'), { code: 2, err: /must be a number above 0/ })
})
