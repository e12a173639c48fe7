/** Held requests over two gateways on one schema: verdicts, limits and webhooks hold for both together. */

import t, { type Test } from 'tap'
import { onDatabase, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { careful } from '../fixtures/review.ts'

/** Two gateways with these settings, and what is made on the first. */
async function startTwo(t: Test, more: object = {}) {
  const origin = await startOrigin(t)
  const policies = [{ name: 'allow-all', default: 'Allow' }, careful]
  const config = { ...onDatabase(await createSchema(t)), Policies: policies, ...more }
  const [a, b] = [await startGateway(t, { config }), await startGateway(t, { config })]
  const bot = await a.agent({ policyName: 'careful' })
  const reviewer = await a.agent({ roles: ['reviewer'], ownerId: 'people' })
  const hold = (path: string, on = a) => on.proxy(bot.token, origin.url + path, { method: 'POST', body: path })
  const idOf = (held: Response) => held.headers.get('gateway-hitl-id') ?? ''
  return { origin, gateways: [a, b] as const, a, b, bot, reviewer, hold, idOf }
}

t.test('of verdicts on both gateways at once one wins, and nothing is sent twice', async t => {
  const { origin, gateways, reviewer, hold, idOf } = await startTwo(t)
  for (let round = 0; round < 5; round++) {
    const id = idOf(await hold(`/r${round}`))
    const verdicts = ['approve', 'deny', 'approve', 'deny'].map((verdict, n) =>
      gateways[n % 2]!.manage('POST', `/hitl/${id}/${verdict}`, undefined, reviewer.token),
    )
    const statuses = (await Promise.all(verdicts)).map(({ status }) => status)
    t.strictSame(statuses.toSorted(), [200, 409, 409, 409])
    const sent = origin.seen.filter(({ target }) => target === `/r${round}`).length
    t.equal(sent, statuses[0] === 200 || statuses[2] === 200 ? 1 : 0)
  }
})

t.test('the limit of held requests is exact over both gateways', async t => {
  const limits = { HumanInTheLoop: { MaxPendingRequests: 10, MaxPendingPercentPerAgent: 100 } }
  const { gateways, hold } = await startTwo(t, limits)
  const all = await Promise.all(Array.from({ length: 24 }, (_, n) => hold(`/n${n}`, gateways[n % 2])))
  t.equal(all.filter(({ status }) => status === 202).length, 10)
  t.equal(all.filter(({ status }) => status === 429).length, 14)
})

t.test('a webhook is sent what both gateways held, once each, and goes on when its gateway stops', async t => {
  const came: string[] = []
  const next: (() => void)[] = []
  const hook = await startOrigin(t, (req, res, seen) => {
    req.on('end', () => {
      setImmediate(() => {
        came.push(JSON.parse(seen.body.toString()).hitlId)
        res.writeHead(204).end()
        for (const wake of next.splice(0)) wake()
      })
    })
  })
  const until = async (count: number) => {
    while (came.length < count) await new Promise<void>(resolve => next.push(resolve))
  }
  const { a, b, hold, idOf } = await startTwo(t, { HumanInTheLoop: { Webhooks: [{ Url: hook.url }] } })
  const ids = [idOf(await hold('/1', b)), idOf(await hold('/2', a)), idOf(await hold('/3', b))]
  await until(3)
  t.strictSame(came, ids, 'in the order of the commits')
  await a.close()
  ids.push(idOf(await hold('/4', b)))
  await until(4)
  t.strictSame(came, ids)
})
