/** Threat T36 of SECURITY.md: a log that cannot be written stops nothing but itself. */
import { openSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import type { RunSetup } from '../fixtures/process.ts'
import { startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const allowAll = { name: 'allow-all', default: 'Allow' }
const settings = (threads: number) => ({
  System: {
    Server: { Http: { Port: 0 }, Threads: threads },
    RateLimit: { RequestsPerMinute: 100_000, Burst: 100_000 },
  },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  Policies: [allowAll],
})

/** A gateway whose log goes to `stdout`, and an agent that has sent more lines than a pipe or socket takes. */
async function unlogged(t: Test, threads: number, stdout: NonNullable<RunSetup['stdout']>) {
  const origin = await startOrigin(t)
  const cwd = testdir(t, { 'gateway.yaml': JSON.stringify(settings(threads)) })
  const served = await startServed(t, { cwd, stdout })
  const { call, admin } = served
  const registration = { name: 'bot', ownerId: 'team', clientSecret: 'secret of the bot', policyName: 'allow-all' }
  const { id } = (await call('POST', '/agents', admin, registration)).json
  const token = await served.tokenOf({ agentId: id, clientSecret: registration.clientSecret })
  const path = `/proxy/${origin.url}/${'long/'.repeat(400)}`
  await Promise.all(Array.from({ length: 400 }, () => call('GET', path, token)))
  await served.run.shows(/log lines cannot be written/)
  return { ...served, id, request: () => call('GET', path, token) }
}

// Lines of all threads are written by the first, and test/log/output.ts has more of what may happen to them.
for (const [threads, stdout, what] of [
  [1, openSync('/dev/full', 'w'), 'on a full disk'],
  [2, 'unread', 'that nobody reads'],
] as const) {
  t.test(
    `a log ${what} is named, and holds up neither requests, a revocation nor the end: ${threads} threads`,
    async t => {
      const { run, call, admin, id, request } = await unlogged(t, threads, stdout)
      t.match(await call('GET', '/health'), {
        status: 200,
        json: { status: 'Healthy', parts: { storage: 'Healthy', log: 'Unhealthy' } },
      })
      t.match((await call('GET', '/metrics', admin)).text, /^agent_gateway_log_failing 1$/m)
      t.equal((await request()).status, 200)
      t.equal((await call('POST', `/agents/${id}/revoke`, admin)).status, 200)
      t.match(await request(), { status: 403, code: 'agent_revoked' })
      run.child.kill('SIGTERM')
      t.equal(await run.ended, 0)
    },
  )
}
