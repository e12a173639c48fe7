/** Threat T15 of SECURITY.md: a thread that hangs knows of no change. */
import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually } from '../fixtures/gateway.ts'
import { openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runMain } from '../fixtures/process.ts'
import { startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const hangs = fileURLToPath(new URL('./child/hangs.ts', import.meta.url))
const hungFirst = fileURLToPath(new URL('./child/hung-first.ts', import.meta.url))

const settings = (drainSeconds: number) => `
System: { Server: { Http: { Port: 0 }, Threads: 2, DrainSeconds: ${drainSeconds} } }
Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } }
Policies: [{ name: open, default: Allow }]
`

async function start(t: Test, drainSeconds: number) {
  const cwd = testdir(t, { 'gateway.yaml': settings(drainSeconds), policies: {} })
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  const { run, url, call, tokenOf, admin } = await startServed(t, { cwd, node: ['--import', hangs] })
  const secret = { clientSecret: 'a-secret-of-the-tests' }
  const named = { name: 'bot', ownerId: 'team', policyName: 'open', ...secret }
  const { id } = (await call('POST', '/agents', admin, named)).json
  const token = await tokenOf({ agentId: id, ...secret })
  /** Hangs thread 1, and resolves when it does. */
  const hang = async (how: string) => {
    const file = join(cwd, 'hang')
    writeFileSync(`${file}-written`, how)
    execFileSync('mv', [`${file}-written`, file])
    while (existsSync(file)) await new Promise(setImmediate)
  }
  /** Lets a thread go on that hangs in the system. */
  const release = () => writeFileSync(join(cwd, 'pipe'), '')
  return { run, url, port: Number(new URL(url).port), admin, id, token, hang, release }
}

// Most of the time is waiting for the thread to be given up.
t.jobs = 4
for (const how of ['in a loop', 'in the system']) {
  t.test(`an agent is revoked while a thread hangs ${how}: answered, and nothing leaves`, async t => {
    const origin = await startOrigin(t)
    // Long enough for a loaded machine; what hangs in the system is never over.
    const gateway = await start(t, how === 'in a loop' ? 20 : 1)
    const kept = openKept(t, gateway.port)
    const headers = { 'Gateway-Authorization': `Bearer ${gateway.token}` }
    const all = await Promise.all(kept.map(one => one.call(`/proxy/${origin.url}/`, { headers })))
    t.strictSame([...new Set(all.map(({ status }) => status))], [200])
    await gateway.hang(how)
    // One that is with the thread that still answers.
    const main = await Promise.any(kept.map(one => one.call('/health').then(() => one)))
    for (const one of kept) if (one !== main) one.call(`/proxy/${origin.url}/late`, { headers }).catch(() => {})
    const revoked = await main.call(`/agents/${gateway.id}/revoke`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${gateway.admin}` },
    })
    t.equal(revoked.status, 200)
    const before = origin.seen.length
    // The calls that wait go on as soon as anything does.
    await gateway.run.shows(/thread 1 has ended and is replaced/)
    // On a loaded machine the end of a loop may come after the replacement.
    const health = await eventually(
      () => main.call('/health'),
      ({ status }) => status === (how === 'in a loop' ? 200 : 503),
    )
    t.match(JSON.parse(health.text), { parts: { threads: how === 'in a loop' ? 'Healthy' : 'Unhealthy' } })
    t.equal(origin.seen.length, before, 'nothing left after the answer')
    gateway.run.child.kill('SIGTERM')
    t.equal(await gateway.run.ended, how === 'in a loop' ? 0 : 'SIGKILL')
  })
}

t.test('a thread that hangs is replaced though nobody changes anything', async t => {
  // Long enough for a loaded machine.
  const gateway = await start(t, 20)
  // Unlike a loop it takes no processor from the tests beside it.
  await gateway.hang('in the system')
  t.ok(await gateway.run.shows(/thread 1 does not answer and is ended/))
  t.ok(await gateway.run.shows(/thread 1 has ended and is replaced/))
  // The thread that hangs still has a socket: a connection that the system gives to it is not answered.
  const healthOf = () => fetchDocumented(`${gateway.url}/health`, { signal: AbortSignal.timeout(500) })
  const statusIs = (wanted: number) =>
    eventually(
      () =>
        healthOf().then(
          ({ status }) => status,
          () => 0,
        ),
      status => status === wanted,
    )
  t.equal(await statusIs(503), 503)
  gateway.release()
  t.equal(await statusIs(200), 200, 'a thread that has ended late hangs no more')
  gateway.run.child.kill('SIGTERM')
  t.equal(await gateway.run.ended, 0)
})

t.test('SIGTERM ends the process while a thread hangs', async t => {
  const gateway = await start(t, 1)
  await gateway.hang('in the system')
  gateway.run.child.kill('SIGTERM')
  t.equal(await gateway.run.ended, 'SIGKILL')
})

for (const watcher of ['storage', 'its own']) {
  t.test(`a first thread that hangs ends the process: the thread of ${watcher} watches`, async t => {
    const run = runMain(t, [watcher], { cwd: testdir(t), script: hungFirst })
    t.equal(await run.ended, 'SIGKILL')
    t.match(run.err(), /the first thread does not respond/)
  })
}

t.test('a start that takes long does not end the process', async t => {
  const run = runMain(t, ['storage', 'starting'], { cwd: testdir(t), script: hungFirst })
  t.equal(await run.ended, 0)
})
