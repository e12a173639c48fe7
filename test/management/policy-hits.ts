import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

for (const Threads of [1, 2]) {
  t.test(`requests are counted by the rule that decided them, with ${Threads} threads`, async t => {
    const { bot, origin, proxy, manage } = await startReview(t, { config: { System: { Server: { Threads } } } })
    for (const method of ['GET', 'DELETE', 'POST', 'GET', 'DELETE', 'GET']) {
      const answer = await proxy(bot.token, origin.url, { method })
      await answer.body?.cancel()
    }
    const hits = [
      { rule: null, count: 3 },
      { rule: 'deletes', count: 2 },
      { rule: 'posts', count: 1 },
    ]
    const read = async () => JSON.parse((await manage('GET', '/policies/careful')).text)
    const seen = await eventually(
      read,
      policy => policy.hits.reduce((sum: number, { count }: { count: number }) => sum + count, 0) === 6,
    )
    t.strictSame(seen.hits, hits)
    t.strictSame(JSON.parse((await manage('GET', '/policies/allow-all')).text).hits, [])
  })
}
