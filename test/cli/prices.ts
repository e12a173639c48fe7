/** The command `prices check` on the log of a gateway, and the warnings about credentials and budgets. */
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const origin = await startOrigin(t, (req, res) =>
  res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end(`{"model":"${req.url?.split('?')[1]}","usage":{"prompt_tokens":1,"completion_tokens":1}}`),
)
const Host = `127.0.0.1:${origin.port}`
const settings = { Metering: { Usage: true, Hosts: [Host] }, Prices: [{ Host, Model: 'priced', Output: 1 }] }

async function check(log: string, config: object, ...more: string[]) {
  const folder = testdir(t, { log, 'gateway.yaml': JSON.stringify(config) })
  const shell = fakeShell(['prices', 'check', `${folder}/log`, '--config', `${folder}/gateway.yaml`, ...more])
  return { code: await runCommand(shell), out: shell.printed, err: shell.complained }
}

t.test('prints the models that were called without a price, refused ones too', async t => {
  const gateway = await startGateway(t, {
    config: {
      ...settings,
      Budgets: [
        { Name: 'money', Owners: ['spenders'], Hosts: [Host] },
        { Name: 'few', Unit: 'Calls', Policies: ['gone', 'allow-all'] },
      ],
      Upstreams: [
        ...['api.openai.com', 'api.example.com'].map(Host => ({ Host, ValueFromEnv: 'SOME_KEY' })),
        ...['shop', 'allow-all'].map(Policy => ({ Host: 'shop.example', Policy, ValueFromEnv: 'SOME_KEY' })),
      ],
    },
    env: { SOME_KEY: 'key' },
    alone: 'its log and its warnings are read',
  })
  const warnings = gateway.gateway.summary.flatMap(([name, text]) => (name === 'Warning' ? [text] : []))
  t.strictSame(warnings, [
    'Upstreams: no budget of money or tokens covers api.openai.com',
    'Upstreams: shop.example is for the policy shop, which is not there',
    'Budgets: few is for the policy gone, which is not there',
  ])
  const free = await gateway.agent()
  const limited = await gateway.agent({ ownerId: 'spenders' })
  const calls = [
    [free, 'priced', 200],
    [free, 'odd', 200],
    [free, 'odd', 200],
    [limited, 'odder', 403],
  ] as const
  for (const [{ token }, model, status] of calls) {
    const body = JSON.stringify({ model })
    const answer = await gateway.proxy(token, `${origin.url}/v1/chat/completions?${model}`, { method: 'POST', body })
    t.equal(answer.status, status)
    await answer.text()
  }
  const lines = await gateway.exchanges(calls.length)
  const log = `not JSON\n${lines.map(line => `${JSON.stringify(line)}\n`).join('')}`
  const found = await check(log, settings)
  t.match(found, { code: 1, err: [] })
  t.match(found.out[0], /^CALLS {2}ORIGIN +MODEL$/)
  t.strictSame(
    found.out
      .slice(1)
      .map(line => line.split(/ +/))
      .sort(),
    [
      ['1', origin.url, 'odder'],
      ['2', origin.url, 'odd'],
    ],
  )
  const mended = { ...settings, Prices: [{ Host, Model: 'odd*', Output: 1 }] }
  t.strictSame(await check(log, mended), { code: 0, out: ['all models that were called have a price'], err: [] })
  t.strictSame(JSON.parse((await check(log, settings, '--json')).out[0]!).models.length, 2)
  t.equal((await check(log, {})).code, 0, 'what is called at no provider has no price')
})

t.test('a log is needed', async t => {
  const shell = fakeShell(['prices', 'check'])
  t.equal(await runCommand(shell), 2)
  t.match(shell.complained.join('\n'), 'name a log')
})
