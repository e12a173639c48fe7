import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { eventually, type GatewaySetup, startGateway, type TestGateway } from '../../fixtures/gateway.ts'
import { startOrigin } from '../../fixtures/origin.ts'
import { type RunSetup, runMain, runToEnd } from '../../fixtures/process.ts'
import { testdir } from '../../fixtures/testdir.ts'

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A gateway with a forward proxy, for which every name is that of this machine, and the command beside it. */
async function start(t: Test, setup: GatewaySetup = {}) {
  const port = await freePort()
  const gateway = await startGateway(t, {
    lookup: async () => ['127.0.0.1'],
    alone: 'the command looks into its data folder',
    ...setup,
    config: {
      ForwardProxy: { Enabled: true, Port: port },
      Policy: { AssignOnRegistration: 'allow-all' },
      ...setup.config,
    },
  })
  const Tmpdir = testdir(t)
  const env = {
    ...{ SYSTEM__SERVER__HTTP__PORT: String(gateway.port), TMPDIR: Tmpdir },
    ...{ FORWARDPROXY__ENABLED: 'true', FORWARDPROXY__PORT: String(port) },
  }
  const runs: RunSetup = { cwd: gateway.directory, env }
  const run = (...args: string[]) => runToEnd(t, ['run', ...args], runs)
  return { gateway, run, runs, temporary: () => readdirSync(Tmpdir), proxy: `http://127.0.0.1:${port}` }
}

const node = (script: string): string[] => ['--', process.execPath, '-e', script]
const get = (url: string) => node(`fetch('${url}').then(async a => console.log(a.status, await a.text()))`)

/** Names of the keys of an agent. */
async function keysOf({ manage }: TestGateway, id: string): Promise<string[]> {
  const keys = JSON.parse((await manage('GET', `/agents/${id}/keys`)).text) as { name: string }[]
  return keys.map(({ name }) => name)
}

t.test('a program calls as the agent, unchanged, and leaves no key and no file behind', async t => {
  const { gateway, run, temporary, proxy } = await start(t)
  const { port, seen } = await startOrigin(t)
  const { id } = await gateway.agent({ name: 'tour' })
  const ended = await run('--agent', 'tour', ...get(`http://api.example:${port}/things`))
  t.match(ended, { code: 0, out: '200 hello from upstream\n' })
  t.match(
    ended.err,
    /^agent-gateway run: \S+ calls as the agent tour through \S+ and trusts .* Nothing is locked: .*\n$/,
  )
  t.match(ended.err, proxy)
  t.equal(seen[0]?.target, '/things')
  t.equal(seen[0]?.headers['proxy-authorization'], undefined)
  const [line] = await gateway.exchanges(1)
  t.match(line, { agentId: id, road: 'forward' })
  t.strictSame(await keysOf(gateway, id), [])
  t.strictSame(temporary(), [])
})

t.test('an agent that is not there is registered', async t => {
  const { gateway, run } = await start(t)
  const { port } = await startOrigin(t)
  const first = await run('--agent', 'fresh', ...get(`http://api.example:${port}/`))
  t.match(first, { code: 0, out: /^200/, err: /the agent fresh is new/ })
  const second = await run('--agent', 'fresh', ...get(`http://api.example:${port}/`))
  t.match(second, { code: 0, out: /^200/ })
  t.notMatch(second.err, 'is new')
  const { items } = JSON.parse((await gateway.manage('GET', '/agents')).text)
  t.equal(items.filter(({ name }: { name: string }) => name === 'fresh').length, 1)
})

t.test('an agent is found by its id, and several of one name are told', async t => {
  const { gateway, run } = await start(t)
  const { id } = await gateway.agent({ name: 'twin' })
  await gateway.agent({ name: 'twin' })
  t.match(await run('--agent', id, ...node('')), { code: 0 })
  t.match(await run('--agent', 'twin', ...node('')), { code: 1, err: /Several agents are called twin\. Use the id: / })
})

t.test('an agent that may not act gets no program', async t => {
  const { gateway, run } = await start(t)
  const { id } = await gateway.agent({ name: 'gone' })
  await gateway.manage('POST', `/agents/${id}/revoke`)
  t.match(await run('--agent', 'gone', ...node('console.log(1)')), {
    code: 1,
    out: '',
    err: /is Revoked: it may not call/,
  })
})

t.test('the exit code is that of the program, or tells its signal, or that there is none', async t => {
  const { run } = await start(t)
  const cases = [
    [node('process.exit(7)'), 7],
    [node('process.kill(process.pid, "SIGTERM")'), 143],
    [node('process.kill(process.pid, "SIGKILL")'), 137],
    [['--', 'no-such-program'], 127],
    [['--', '/etc/passwd'], 126],
  ] as const
  for (const [command, code] of cases) t.equal((await run('--agent', 'tour', ...command)).code, code, String(command))
})

t.test('a signal is for the program, and the key is revoked all the same', async t => {
  const { gateway, runs } = await start(t)
  const { id } = await gateway.agent({ name: 'tour' })
  const script = 'process.on("SIGTERM", () => process.exit(5)); setInterval(() => {}, 1e6); console.log("runs")'
  const running = runMain(t, ['run', '--agent', 'tour', ...node(script)], runs)
  await running.shows(/runs/)
  t.equal((await keysOf(gateway, id)).length, 1)
  running.child.kill('SIGTERM')
  t.equal(await running.ended, 5)
  t.strictSame(await keysOf(gateway, id), [])
})

t.test('the next run revokes the key of one that was killed', async t => {
  const { gateway, run, runs } = await start(t)
  const { id } = await gateway.agent({ name: 'tour' })
  await gateway.manage('POST', `/agents/${id}/keys`, { name: 'of somebody else' })
  const running = runMain(t, ['run', '--agent', 'tour', '--', 'cat'], runs)
  await running.shows(/calls as/)
  const [, left] = await eventually(
    () => keysOf(gateway, id),
    keys => keys.length === 2,
  )
  running.child.kill('SIGKILL')
  // The program goes on, and ends with its input.
  running.child.stdin?.end()
  await running.ended
  t.match(await run('--agent', 'tour', ...node('')), { code: 0 })
  t.strictSame(await keysOf(gateway, id), ['of somebody else'])
  t.match(left, new RegExp(`, process ${running.child.pid}$`))
})

t.test('a key that is given is used, and stays', async t => {
  const { gateway, runs } = await start(t)
  const { port } = await startOrigin(t)
  const { id } = await gateway.agent({ name: 'tour' })
  const { key } = JSON.parse((await gateway.manage('POST', `/agents/${id}/keys`, { name: 'mine' })).text)
  const env = { ...runs.env, AGENT_GATEWAY_KEY: key }
  const url = `http://api.example:${port}/`
  const script = `console.log(process.env.AGENT_GATEWAY_KEY); fetch('${url}').then(a => console.log(a.status))`
  const ended = await runToEnd(t, ['run', ...node(script)], { ...runs, env })
  t.match(ended, { code: 0, out: 'undefined\n200\n', err: /with the key in AGENT_GATEWAY_KEY/ })
  t.strictSame(await keysOf(gateway, id), ['mine'])
})

t.test('what is refused, the program sees with its reason', async t => {
  const { gateway, run } = await start(t)
  await gateway.policy({ name: 'nothing', default: 'Deny' })
  await gateway.agent({ name: 'poor', policyName: 'nothing' })
  const ended = await run('--agent', 'poor', ...get('http://api.example:9999/'))
  t.match(ended, { code: 0, out: /^403 .*policy_denied/ })
})

t.test('options behind -- are those of the program', async t => {
  const { run } = await start(t)
  const ended = await run('--agent', 'tour', ...node('console.log(...process.argv.slice(1))'), '--', '--help', '-h')
  t.match(ended, { code: 0, out: '--help -h\n' })
})

t.test('what is missing is named', async t => {
  const { run, runs } = await start(t)
  t.match(await run('--agent', 'tour'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run('--agent', 'tour', 'curl'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run('--agent', 'tour', '--'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run(...node('')), { code: 2, err: /--agent NAME is missing/ })
  const without = { ...runs, env: { ...runs.env, FORWARDPROXY__ENABLED: 'false' } }
  const off = await runToEnd(t, ['run', '--agent', 'tour', ...node('')], without)
  t.match(off, { code: 1, err: /ForwardProxy:Enabled is false\. Set it to true/ })
  const anyPort = { ...runs, env: { ...runs.env, FORWARDPROXY__PORT: '0' } }
  const unknown = await runToEnd(t, ['run', '--agent', 'tour', ...node('')], anyPort)
  t.match(unknown, { code: 1, err: /Name the address with --proxy/ })
  const stopped = { ...runs, env: { ...runs.env, SYSTEM__SERVER__HTTP__PORT: '1' } }
  t.match(await runToEnd(t, ['run', '--agent', 'tour', ...node('')], stopped), {
    code: 1,
    err: /No gateway answers at/,
  })
})
