import t from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { careful } from '../fixtures/review.ts'
import { startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const settings = (threads: number) => ({
  System: { Server: { Http: { Port: 0 }, Threads: threads, DrainSeconds: 1 } },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  Policies: [careful],
})

for (const threads of [1, 2])
  t.test(`a replay that never ends does not outlast the drain limit, and is unknown: ${threads} threads`, async t => {
    const begun = Promise.withResolvers<void>()
    let answers = false
    const origin = await startOrigin(t, (_, res) => {
      begun.resolve()
      if (answers) res.end('done')
    })
    const cwd = testdir(t, { 'gateway.yaml': JSON.stringify(settings(threads)) })
    const first = await startServed(t, { cwd })
    const bot = { name: 'bot', ownerId: 'team', clientSecret: 'secret of the bot', policyName: 'careful' }
    const { id: agentId } = (await first.call('POST', '/agents', first.admin, bot)).json
    const token = await first.tokenOf({ agentId, clientSecret: bot.clientSecret })
    const id = (await first.call('POST', `/proxy/${origin.url}/`, token)).headers.get('gateway-hitl-id')
    const approval = first.call('POST', `/hitl/${id}/approve`, first.admin).catch(() => 'cut off')
    await begun.promise
    first.run.child.kill('SIGTERM')
    t.equal(await first.run.ended, 1, 'something was cut off')
    t.equal(await approval, 'cut off')

    const second = await startServed(t, { cwd })
    const status = await second.call('GET', `/hitl/status/${id}`, second.admin)
    t.match(status.json, { status: 'Approved', request: { replay: 'unknown' } })
    const { items } = (await second.call('GET', `/audit?subject=${id}`, second.admin)).json
    t.match(items[0], { action: 'hitl.replay', actor: 'gateway' })
    t.equal(origin.seen.length, 1)
    answers = true
    t.equal((await second.call('POST', `/hitl/${id}/approve`, second.admin, { resend: true })).text, 'done')
    t.equal(origin.seen.length, 2)
  })
