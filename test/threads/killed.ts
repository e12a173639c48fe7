import t from 'tap'
import { enough, openKept } from '../fixtures/kept.ts'
import { startReview } from '../fixtures/review.ts'

t.test('a thread that dies under load is replaced, and nothing that was acknowledged is lost', async t => {
  const review = await startReview(t, {
    config: {
      System: { Server: { Threads: 2 }, RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 } },
      HumanInTheLoop: { MaxPendingRequests: 100_000, MaxPendingPercentPerAgent: 100 },
    },
  })
  const { gateway, origin, bot, port } = review
  const headers = { 'Gateway-Authorization': `Bearer ${bot.token}` }
  const acknowledged = new Set<string>()
  let broken = 0
  let stop = false

  const client = async () => {
    let [kept] = openKept(t, port, 1)
    while (!stop) {
      try {
        const { status, headers: answer } = await kept!.call(`/proxy/${origin.url}/`, { method: 'POST', headers })
        if (status === 202) acknowledged.add(String(answer['gateway-hitl-id']))
        await kept!.call(`/proxy/${origin.url}/`, { headers })
      } catch {
        broken += 1
        kept!.close()
        ;[kept] = openKept(t, port, 1)
      }
    }
  }
  const clients = Array.from({ length: 8 }, client)
  for (let life = 1; life <= 3; life++) {
    const before = acknowledged.size
    while (acknowledged.size < before + 20) await new Promise(setImmediate)
    while ((gateway.pool?.replaced ?? 0) < life) {
      await gateway.pool?.kill(1)
      await new Promise(setImmediate)
    }
  }
  stop = true
  await Promise.all(clients)
  t.comment(`${acknowledged.size} held, ${broken} connections broke`)

  // A connection may break between what was stored and its answer: there may be more than were acknowledged.
  const items = (await (await review.call('GET', '/hitl')).json()) as { id: string }[]
  const listed = new Set(items.map(({ id }) => id))
  t.strictSame(
    [...acknowledged].filter(id => !listed.has(id)),
    [],
  )

  // The one in its place knows what is in force, and takes its share.
  origin.seen.length = 0
  await review.manage('POST', `/agents/${review.reviewer.id}/quarantine`)
  const statuses = async (token: string) => {
    const of = { 'Gateway-Authorization': `Bearer ${token}` }
    const answers = await Promise.all(
      openKept(t, port).map(kept => kept.call(`/proxy/${origin.url}/`, { headers: of })),
    )
    return [...new Set(answers.map(({ status }) => status))]
  }
  t.strictSame(await statuses(bot.token), [200])
  t.strictSame(await statuses(review.reviewer.token), [403])
  t.equal(origin.seen.length, enough)
  t.ok(review.log.some(({ message }) => message === 'thread 1 has ended and is replaced'))
})
