import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { careful, startReview } from '../fixtures/review.ts'

interface Hits {
  readonly rule: string | null
  readonly count: number
  readonly total: number
}

for (const Threads of [1, 2]) {
  t.test(`requests are counted by the rule that decided them, with ${Threads} threads, over restarts`, async t => {
    const System = { Server: { Threads } }
    const { bot, origin, proxy, manage, close, directory } = await startReview(t, { config: { System } })
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
      policy => policy.hits.reduce((sum: number, { count }: Hits) => sum + count, 0) === 6,
    )
    t.strictSame(
      seen.hits.map(({ rule, count }: Hits) => ({ rule, count })),
      hits,
    )
    t.strictSame(JSON.parse((await manage('GET', '/policies/allow-all')).text).hits, [])
    const rulesOf = (effect: string) => [{ ...careful.rules[2], effect }]
    await manage('POST', '/policies', { name: 'moving', default: 'Allow', rules: rulesOf('Deny') })
    await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'moving' })
    for (let time = 0; time < 3; time++) await (await proxy(bot.token, origin.url, { method: 'DELETE' })).body?.cancel()
    await manage('PUT', '/policies/moving', { default: 'Allow', rules: rulesOf('Hitl') })
    await close()

    const changed = { ...careful.rules[0], effect: 'Deny' }
    const policy = { ...careful, rules: [changed, ...careful.rules.slice(1)] }
    const again = await startGateway(t, { directory, config: { System, Policies: [policy] } })
    const kept: readonly Hits[] = JSON.parse((await again.manage('GET', '/policies/careful')).text).hits
    const rows = kept.map(({ rule, count, total }) => `${rule} ${count} ${total}`)
    t.strictSame(rows.sort(), ['deletes 0 2', 'null 0 3'], 'a rule that was changed begins anew')
    const moved = JSON.parse((await again.manage('GET', '/policies/moving')).text)
    t.strictSame(moved.hits, [], 'nor has it what came a moment before the change')
    const drift = JSON.parse((await again.manage('GET', '/policies/careful/drift')).text)
    t.strictSame(drift.unused, ['posts', 'puts'])
    t.match(drift.rules.at(-1), { rule: null, hits: 3 })
  })
}
