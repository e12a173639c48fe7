/** Threat T36 of SECURITY.md: a log that cannot be written stops nothing but itself. */
import { openSync } from 'node:fs'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import type { RunSetup } from '../fixtures/process.ts'
import { startServed } from '../fixtures/served.ts'
import t, { type Test } from '../fixtures/tap.ts'

const allowAll = { name: 'allow-all', default: 'Allow' }
const settings = (threads: number) => ({
  System: {
    Server: { Http: { Port: 0 }, Threads: threads },
    RateLimit: { RequestsPerMinute: 100_000, Burst: 100_000 },
  },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  Policies: [allowAll],
})

/** A gateway whose log goes to `stdout`, and an agent that has filled it with lines until it shows. */
async function unlogged(t: Test, threads: number, stdout: NonNullable<RunSetup['stdout']>) {
  const origin = await startOrigin(t)
  const cwd = t.testdir({ 'gateway.yaml': JSON.stringify(settings(threads)) })
  const served = await startServed(t, { cwd, stdout })
  const { call, admin } = served
  const registration = { name: 'bot', ownerId: 'team', clientSecret: 'secret of the bot', policyName: 'allow-all' }
  const { id } = (await call('POST', '/agents', admin, registration)).json
  const token = await served.tokenOf({ agentId: id, clientSecret: registration.clientSecret })
  const path = `/proxy/${origin.url}/${'long/'.repeat(400)}`
  const log = async () => {
    await Promise.all(Array.from({ length: 8 }, () => call('GET', path, token)))
    return (await call('GET', '/health')).json.parts.log
  }
  t.equal(await eventually(log, state => state === 'Unhealthy'), 'Unhealthy')
  return { ...served, id, request: () => call('GET', path, token) }
}

for (const threads of [1, 2])
  for (const stdout of [openSync('/dev/full', 'w'), 'unread'] as const) {
    const what = stdout === 'unread' ? 'that nobody reads' : 'on a full disk'
    t.test(
      `a log ${what} is named, and holds up neither requests, a revocation nor the end: ${threads} threads`,
      async t => {
        const { run, call, admin, id, request } = await unlogged(t, threads, stdout)
        t.match(run.err(), /log lines cannot be written/)
        t.match(await call('GET', '/health'), {
          status: 200,
          json: { status: 'Healthy', parts: { storage: 'Healthy' } },
        })
        t.match((await call('GET', '/metrics', admin)).text, /^agent_gateway_log_failing 1$/m)
        t.equal((await request()).status, 200)
        t.equal((await call('POST', `/agents/${id}/revoke`, admin)).status, 200)
        t.match(await request(), { status: 403, code: 'agent_revoked' })
        const start = performance.now()
        run.child.kill('SIGTERM')
        t.equal(await run.ended, 0)
        t.ok(performance.now() - start < 10_000)
      },
    )
  }
