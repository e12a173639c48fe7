import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../fixtures/gateway.ts'
import { secureName, startOrigin, startSecureOrigin } from '../../fixtures/origin.ts'
import { runMain, runToEnd } from '../../fixtures/process.ts'
import { nodeProgram, startRun } from '../../fixtures/run-command.ts'

const { gateway, run, runs, temporary, proxy } = await startRun(t)
const { id: tour } = await gateway.agent({ name: 'tour' })

const get = (url: string) => nodeProgram(`fetch('${url}').then(async a => console.log(a.status, await a.text()))`)

/** Names of the keys of an agent. */
async function keysOf(id: string): Promise<string[]> {
  const keys = JSON.parse((await gateway.manage('GET', `/agents/${id}/keys`)).text) as { name: string }[]
  return keys.map(({ name }) => name)
}

t.test('a program calls as the agent, unchanged, and leaves no key and no file behind', async t => {
  const { port, seen } = await startOrigin(t)
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
  t.match(line, { agentId: tour, road: 'forward' })
  t.strictSame(await keysOf(tour), [])
  t.strictSame(temporary(), [])
})

t.test('the TLS of a program is opened, and it trusts that', async t => {
  const { port, seen } = await startSecureOrigin(t)
  const ended = await run('--agent', 'tour', ...get(`https://${secureName}:${port}/things`))
  t.match(ended, { code: 0, out: '200 hello from upstream\n' })
  t.equal(seen[0]?.target, '/things')
  t.match((await gateway.exchanges(2))[1], { road: 'intercepted', path: '/things' })
})

t.test('an agent that is not there is registered', async t => {
  const { port } = await startOrigin(t)
  const first = await run('--agent', 'fresh', ...get(`http://api.example:${port}/`))
  t.match(first, { code: 0, out: /^200/, err: /the agent fresh is new/ })
  const second = await run('--agent', 'fresh', ...get(`http://api.example:${port}/`))
  t.match(second, { code: 0, out: /^200/ })
  t.notMatch(second.err, 'is new')
  const { items } = JSON.parse((await gateway.manage('GET', '/agents')).text)
  t.equal(items.filter(({ name }: { name: string }) => name === 'fresh').length, 1)
})

t.test('an agent is found by its id, and several of one name are listed', async t => {
  const { id } = await gateway.agent({ name: 'twin' })
  await gateway.agent({ name: 'twin' })
  t.match(await run('--agent', id, ...nodeProgram('')), { code: 0 })
  t.match(await run('--agent', 'twin', ...nodeProgram('')), {
    code: 1,
    err: /Several agents are called twin\. Use the id: /,
  })
})

t.test('an agent that may not act gets no program', async t => {
  const { id } = await gateway.agent({ name: 'gone' })
  await gateway.manage('POST', `/agents/${id}/revoke`)
  t.match(await run('--agent', 'gone', ...nodeProgram('console.log(1)')), {
    code: 1,
    out: '',
    err: /is Revoked: it may not call/,
  })
})

t.test('the exit code is that of the program, or stands for its signal, or for no program', async t => {
  const cases = [
    [nodeProgram('process.exit(7)'), 7],
    [nodeProgram('process.kill(process.pid, "SIGTERM")'), 143],
    [nodeProgram('process.kill(process.pid, "SIGKILL")'), 137],
    [['--', 'no-such-program'], 127],
    [['--', '/etc/passwd'], 126],
  ] as const
  for (const [command, code] of cases) t.equal((await run('--agent', 'tour', ...command)).code, code, String(command))
})

t.test('a signal is for the program, and the key is revoked all the same', async t => {
  const script = 'process.on("SIGTERM", () => process.exit(5)); setInterval(() => {}, 1e6); console.log("runs")'
  const running = runMain(t, ['run', '--agent', 'tour', ...nodeProgram(script)], runs)
  await running.shows(/runs/)
  t.equal((await keysOf(tour)).length, 1)
  running.child.kill('SIGTERM')
  t.equal(await running.ended, 5)
  t.strictSame(await keysOf(tour), [])
})

t.test('the next run revokes the key of one that was killed', async t => {
  const { id } = await gateway.agent({ name: 'killed' })
  await gateway.manage('POST', `/agents/${id}/keys`, { name: 'of somebody else' })
  const running = runMain(t, ['run', '--agent', 'killed', '--', 'cat'], runs)
  await running.shows(/calls as/)
  const [, left] = await eventually(
    () => keysOf(id),
    keys => keys.length === 2,
  )
  running.child.kill('SIGKILL')
  // The program goes on, and ends with its input.
  running.child.stdin?.end()
  await running.ended
  t.match(await run('--agent', 'killed', ...nodeProgram('')), { code: 0 })
  t.strictSame(await keysOf(id), ['of somebody else'])
  t.match(left, new RegExp(`, process ${running.child.pid}$`))
})

t.test('a key that is given is used, and stays', async t => {
  const { port } = await startOrigin(t)
  const { id } = await gateway.agent({ name: 'keyed' })
  const { key } = JSON.parse((await gateway.manage('POST', `/agents/${id}/keys`, { name: 'mine' })).text)
  const env = { ...runs.env, AGENT_GATEWAY_KEY: key }
  const url = `http://api.example:${port}/`
  const script = `console.log(process.env.AGENT_GATEWAY_KEY); fetch('${url}').then(a => console.log(a.status))`
  const ended = await runToEnd(t, ['run', ...nodeProgram(script)], { ...runs, env })
  t.match(ended, { code: 0, out: 'undefined\n200\n', err: /with the key in AGENT_GATEWAY_KEY/ })
  t.strictSame(await keysOf(id), ['mine'])
})

t.test('what is refused, the program sees with its reason', async t => {
  await gateway.policy({ name: 'nothing', default: 'Deny' })
  await gateway.agent({ name: 'poor', policyName: 'nothing' })
  const ended = await run('--agent', 'poor', ...get('http://api.example:9999/'))
  t.match(ended, { code: 0, out: /^403 .*policy_denied/ })
})

t.test('options behind -- are those of the program', async t => {
  const ended = await run(
    '--agent',
    'tour',
    ...nodeProgram('console.log(...process.argv.slice(1))'),
    '--',
    '--help',
    '-h',
  )
  t.match(ended, { code: 0, out: '--help -h\n' })
})

t.test('what is missing is named', async t => {
  t.match(await run('--agent', 'tour'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run('--agent', 'tour', 'curl'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run('--agent', 'tour', '--'), { code: 2, err: /the program must stand behind --/ })
  t.match(await run(...nodeProgram('')), { code: 2, err: /--agent NAME is missing/ })
  t.match(await run('--no-unix-sockets', ...nodeProgram('')), { code: 2, err: /--no-unix-sockets needs --lock/ })
  const without = { ...runs, env: { ...runs.env, FORWARDPROXY__ENABLED: 'false' } }
  const off = await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram('')], without)
  t.match(off, { code: 1, err: /ForwardProxy:Enabled is false in .*\. Set it to true/ })
  const anyPort = { ...runs, env: { ...runs.env, FORWARDPROXY__PORT: '0' } }
  const unknown = await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram('')], anyPort)
  t.match(unknown, { code: 1, err: /Name the address with --proxy/ })
  const stopped = { ...runs, env: { ...runs.env, SYSTEM__SERVER__HTTP__PORT: '1' } }
  t.match(await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram('')], stopped), {
    code: 1,
    err: /No gateway answers at/,
  })
})

t.test('the program does not get the credential of an upstream that the gateway attaches', async t => {
  const { cwd } = runs
  writeFileSync(
    join(cwd, 'gateway.yaml'),
    JSON.stringify({ Upstreams: [{ Host: 'api.example', ValueFromEnv: 'UPSTREAM_TOKEN' }] }),
  )
  const env = { ...runs.env, UPSTREAM_TOKEN: 'of the upstream', OWN: 'own' }
  const args = ['run', '--agent', 'tour', ...nodeProgram('console.log(process.env.UPSTREAM_TOKEN, process.env.OWN)')]
  t.match(await runToEnd(t, args, { ...runs, env }), { code: 0, out: 'undefined own\n' })
})
