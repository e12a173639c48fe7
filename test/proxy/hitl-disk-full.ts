/** Threat T45 of SECURITY.md. */

import { spawnSync } from 'node:child_process'
import t from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { careful } from '../fixtures/review.ts'
import { startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const settings = {
  System: { Server: { Http: { Port: 0 } }, RateLimit: { RequestsPerMinute: 10_000, Burst: 10_000 } },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  Trust: { QuarantineDenials: 0 },
  Policies: [careful],
}

t.test('on a full disk nothing is held, decided or changed, reading goes on, and all is there afterwards', async t => {
  const origin = await startOrigin(t)
  const cwd = testdir(t, { 'gateway.yaml': JSON.stringify(settings) })
  // Files may grow to 512 KiB or 1 MiB, as the shell counts.
  const { call, tokenOf, admin, run } = await startServed(t, { cwd, ulimit: '-f 1024' })
  const registration = { name: 'bot', ownerId: 'team', clientSecret: 'secret of the bot', policyName: 'careful' }
  const { id: agentId } = (await call('POST', '/agents', admin, registration)).json
  const bot = await tokenOf({ agentId, clientSecret: registration.clientSecret })
  const hold = () => call('POST', `/proxy/${origin.url}/things`, bot)
  const held = [await hold(), await hold()].map(({ headers }) => headers.get('gateway-hitl-id'))

  // A refused attempt writes nothing but its record.
  while ((await call('DELETE', `/agents/${agentId}`, bot)).status === 403);
  // There may still be room for a shorter record, or one that begins no new page. On Linux it can be taken away.
  spawnSync('prlimit', ['--pid', String(run.child.pid), '--fsize=0'])

  const attempts = [
    await hold(),
    await call('POST', `/hitl/${held[0]}/approve`, admin, { comment: 'fine' }),
    await call('POST', `/hitl/${held[1]}/deny`, admin),
    await call('POST', '/agents', admin, registration),
    await call('POST', `/agents/${agentId}/revoke`, admin),
    await call('POST', '/policies', admin, { name: 'p', default: 'Deny' }),
  ]
  for (const { status, code } of attempts) t.strictSame({ status, code }, { status: 503, code: 'store_unavailable' })
  t.equal(origin.seen.length, 0)
  const waiting = async (ask: typeof call, token: string) =>
    (await ask('GET', '/hitl', token)).json.map((item: { id: string; status: string }) => [item.id, item.status])
  const both = held.map(id => [id, 'Pending']).sort()
  t.strictSame((await waiting(call, admin)).sort(), both)
  t.equal((await call('GET', `/proxy/${origin.url}/things`, bot)).status, 200, 'what needs no writing goes on')
  run.child.kill('SIGTERM')
  t.equal(await run.ended, 0)

  const after = await startServed(t, { cwd })
  t.strictSame((await waiting(after.call, after.admin)).sort(), both)
  t.match(await after.call('GET', `/agents/${agentId}`, after.admin), { json: { status: 'Active' } })
  t.equal((await after.call('GET', '/agents', after.admin)).json.totalCount, 2)
  t.equal((await after.call('POST', `/hitl/${held[0]}/approve`, after.admin)).status, 200)
  t.strictSame(
    origin.seen.map(({ method }) => method),
    ['GET', 'POST'],
  )
})
