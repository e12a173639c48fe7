/** T77, budgets: requests are held, and pass by a grant, in every thread. */
import t from 'tap'
import { enough, openKept } from '../fixtures/kept.ts'
import { startReview } from '../fixtures/review.ts'

const limit = 12
const config = {
  System: { Server: { Threads: 2 } },
  HumanInTheLoop: { MaxPendingPercentPerAgent: 100 },
  Budgets: [{ Name: 'calls', Unit: 'Calls', Limit: limit, Per: 'Month' }],
}

t.test('every thread holds requests, and uses no grant for those that a budget refuses', async t => {
  const review = await startReview(t, { config })
  const { origin, bot, approve, manage } = review
  const clients = openKept(t, review.port)
  const headers = { 'Gateway-Authorization': `Bearer ${bot.token}` }
  const post = () =>
    Promise.all(clients.map(client => client.call(`/proxy/${origin.url}/x`, { method: 'POST', headers })))
  const held = await post()
  t.strictSame([...new Set(held.map(({ status }) => status))], [202])
  const threads = new Set(held.map(answer => String(answer.headers['gateway-request-id']).split('-')[0]))
  t.equal(threads.size, 2, 'both threads took part')
  const id = String(held[0]?.headers['gateway-hitl-id'])
  t.equal((await approve(id, { grant: { minutes: 5, maxUses: 1_000 } })).status, 200)
  const statuses = (await post()).map(({ status }) => status)
  const passed = statuses.filter(status => status === 200).length
  t.equal(statuses.filter(status => status === 429).length, enough - passed)
  t.ok(passed > 0 && passed < limit, `${passed} of ${enough} passed`)
  t.match(JSON.parse((await manage('GET', '/hitl/grants')).text), [{ uses: passed }])
})
