import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { type RunSetup, runToEnd } from '../fixtures/process.ts'
import { startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const settings = `
System: { Server: { Http: { Port: 0 } } }
Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } }
Policy: { AssignOnRegistration: open }
Policies: [{ name: open, default: Allow }]
`

/** A gateway in a process of its own, and the token of its first admin. */
async function start(t: Test, setup: Partial<RunSetup> = {}) {
  const { cwd = testdir(t, { 'gateway.yaml': settings, policies: {} }) } = setup
  const { run, admin: token, ...served } = await startServed(t, { ...setup, cwd })
  return { ...run, ...served, token }
}

const proxied = (gateway: { url: string; token: string }, target: string): Promise<Response> =>
  fetch(`${gateway.url}/proxy/${target}`, { headers: { 'Gateway-Authorization': `Bearer ${gateway.token}` } })

/** A SIGHUP at the first line of the command, before anything listens for it that a gateway has. */
const earlySignal = `
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      if (/\\/cli\\/(?:commands|serve)\\.ts$/.test(url)) process.kill(process.pid, 'SIGHUP')
      return next(url, context)
    },
  })`

t.test('one gateway, from a SIGHUP while it starts, which does not end it, to its end', async t => {
  const cwd = testdir(t, { 'gateway.yaml': settings, policies: {}, 'early.mjs': earlySignal })
  const env = { SYSTEM__SERVER__DRAINSECONDS: '1', GATEWAY_TEST_SOURCES: '1' }
  const gateway = await start(t, { cwd, env, node: ['--import', './early.mjs'] })

  await t.test('what a person wants to know at start is one block on standard error', async t => {
    t.match(gateway.err(), /agent-gateway is ready/)
    t.match(gateway.err(), /Console +http:\/\/127\.0\.0\.1:\d+\/console\//)
    t.match(gateway.err(), /Docs +http:\/\/127\.0\.0\.1:\d+\/open-api/)
    t.match(gateway.err(), /Configuration +gateway\.yaml/)
    t.match(gateway.err(), /bootstrap\.json/)
    t.match(gateway.err(), /Policies +open/)
  })

  await t.test('SIGHUP reloads the policies, and a bad file leaves those in force', async t => {
    await gateway.shows(/policies reloaded: nothing changed/)
    gateway.child.kill('SIGHUP')
    await gateway.shows(/(?:policies reloaded: nothing changed[\s\S]*){2}/)
    writeFileSync(join(cwd, 'policies/bad.yaml'), 'name: [')
    gateway.child.kill('SIGHUP')
    await gateway.shows(/policies not reloaded: .*bad\.yaml:1:/)
    t.match((await gateway.call('GET', '/policies', gateway.token)).json, { items: [{ name: 'open' }] })
  })

  await t.test('a storm of SIGHUP costs no request and no line of the log, and the last file is in force', async t => {
    const origin = await startOrigin(t)
    rmSync(join(cwd, 'policies/bad.yaml'))
    const paths = Array.from({ length: 40 }, (_, call) => `/storm/${call}`)
    const answers = paths.map(path => proxied(gateway, origin.url + path))
    for (let times = 0; times < 300; times++) gateway.child.kill('SIGHUP')
    writeFileSync(join(cwd, 'policies/late.yaml'), 'name: late\ndefault: Deny\n')
    gateway.child.kill('SIGHUP')
    t.strictSame(new Set((await Promise.all(answers)).map(({ status }) => status)), new Set([200]))
    await gateway.shows(/policies reloaded: .*late/)
    for (const path of paths) await gateway.shows(new RegExp(`"path":"${path}"`))
  })

  await t.test('what is not finished within DrainSeconds is cut off, and the exit code is 1', async t => {
    const held = Promise.withResolvers<void>()
    const origin = await startOrigin(t, () => held.resolve())
    const answer = proxied(gateway, origin.url)
    answer.catch(() => {})
    await held.promise
    gateway.child.kill('SIGTERM')
    t.equal(await gateway.ended, 1)
    await t.rejects(answer)
  })

  await t.test('standard output has JSON lines, from started to stopped', async t => {
    const lines = gateway.out().trim().split('\n')
    t.match(JSON.parse(lines[0] ?? ''), { message: 'started', version: /^\d+\.\d+\.\d+/ })
    t.match(JSON.parse(lines.at(-1) ?? ''), { message: /^stopped/, count: 1 })
    for (const line of lines) t.match(JSON.parse(line), { level: String, time: String, message: String })
  })
})

/** The same signal twice at once is one. False: a busy machine brought the second one too late for that. */
async function isStoppedByTwo(t: Test): Promise<boolean> {
  const held = Promise.withResolvers<() => void>()
  const origin = await startOrigin(t, (_req, res) => held.resolve(() => res.end('late')))
  const gateway = await start(t)
  const answer = proxied(gateway, origin.url).then(res => res.text())
  answer.catch(() => {})
  const finish = await held.promise
  const begun = performance.now()
  gateway.child.kill('SIGINT')
  await gateway.shows(/"count":1,"message":"stopping/)
  gateway.child.kill('SIGINT')
  await t.rejects(gateway.call('GET', '/health'), 'it takes the second one before it is asked again')
  finish()
  const code = await gateway.ended
  if (code === 1 && performance.now() - begun >= 1_000) return false
  t.equal(code, 0)
  t.equal(await answer, 'late')
  return true
}

t.test(
  'a signal stops accepting, finishes what is in flight, and ends with 0; twice at once, as by npm, is once',
  async t => void (await eventually(() => isStoppedByTwo(t), Boolean)),
)

t.test('a second signal ends at once with 1 and says how many requests were cut off', async t => {
  const held = Promise.withResolvers<void>()
  const origin = await startOrigin(t, () => held.resolve())
  const gateway = await start(t)
  const answer = proxied(gateway, origin.url)
  answer.catch(() => {})
  await held.promise
  gateway.child.kill('SIGTERM')
  await gateway.shows(/"message":"stopping/)
  gateway.child.kill('SIGINT')
  t.equal(await gateway.ended, 1)
  t.match(gateway.out(), /"level":"error".*"count":1,"message":"ended at once/)
  await t.rejects(answer)
})

t.test('a fault of the set-up is reported in a line or two, without a stack, and the exit code is 1', async t => {
  const busy = createServer().listen(0, '127.0.0.1')
  t.teardown(() => busy.close())
  await once(busy, 'listening')
  const { port } = busy.address() as AddressInfo
  const cases: [string, object, Record<string, string>, RegExp][] = [
    ['a port that is taken', {}, { SYSTEM__SERVER__HTTP__PORT: String(port) }, /is in use\. .*System:Server:Http:Port/],
    ['a data folder that is a file', { data: 'x' }, {}, /data/],
    [
      'an unknown key',
      { 'gateway.yaml': 'Sistem: {}' },
      {},
      /gateway\.yaml:1:1: Sistem: unknown key, did you mean System\?/,
    ],
    ['a policy that is not there', {}, { POLICY__GLOBAL: 'none' }, /Policy:Global: there is no policy named none/],
  ]
  for (const [name, files, env, message] of cases) {
    await t.test(name, async t => {
      const cwd = testdir(t, { 'gateway.yaml': settings, ...files })
      const { code, out, err } = await runToEnd(t, ['serve'], { cwd, env })
      t.equal(code, 1)
      t.equal(out, '')
      t.match(err, message)
      t.notMatch(err, /^\s+at /m)
      t.ok(err.trim().split('\n').length <= 2, err)
    })
  }
})
