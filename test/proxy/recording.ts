/** Shapes of requests are counted, of all threads, with what came of them. Threat T80. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { type Review, startReview } from '../fixtures/review.ts'

interface Shown {
  readonly method: string
  readonly path: string
  readonly count: number
  readonly effect: string
  readonly rule: string | null
  readonly status: number
  readonly verdict: string | null
  readonly unfit: string | null
  readonly names: Readonly<Record<string, readonly string[]>>
}

async function shapesOf({ manage, bot }: Review, least: number, query = ''): Promise<readonly Shown[]> {
  const read = async () => JSON.parse((await manage('GET', `/agents/${bot.id}/shapes${query}`)).text)
  const sum = ({ items }: { items: readonly Shown[] }) => items.reduce((all, { count }) => all + count, 0)
  return (await eventually(read, page => sum(page) >= least)).items
}

const rowOf = ({ method, path, effect, rule, status, verdict, unfit, count }: Shown) => [
  ...[method, path, effect, rule, status, verdict, unfit, count],
]

for (const Threads of [1, 2]) {
  t.test(`requests are counted by shape and outcome, with ${Threads} threads`, async t => {
    const review = await startReview(t, { config: { System: { Server: { Threads } } } })
    const { bot, origin, proxy } = review
    const send = async (method: string, path: string) => {
      const answer = await proxy(bot.token, origin.url + path, { method })
      await answer.body?.cancel()
    }
    for (const path of ['/v1/items/1', '/v1/items/2', '/v1/items/2', '/v1/items?q=secret']) await send('GET', path)
    await send('DELETE', '/v1/items/1')
    const found = await shapesOf(review, 5)
    t.strictSame(found.map(rowOf).sort(), [
      ['DELETE', '/v1/items/{int}', 'Deny', 'deletes', 4, null, null, 1],
      ['GET', '/v1/items', 'Allow', null, 2, null, null, 1],
      ['GET', '/v1/items/{int}', 'Allow', null, 2, null, null, 3],
    ])
  })
}

t.test('what a person has decided is counted with the names in its body, and forgotten when an admin asks', async t => {
  const review = await startReview(t)
  const { reviewer } = review
  const body = (member: string) => ({
    body: JSON.stringify({ [member]: 'value' }),
    headers: { 'content-type': 'application/json' },
  })
  t.equal((await review.approve(await review.hold('/notes', body('approved')))).status, 200)
  t.equal((await review.deny(await review.hold('/notes', body('denied')))).status, 200)
  const found = await shapesOf(review, 4)
  const rows = found.map(one => [one.verdict, one.unfit, one.names['input.body.@keys'], one.count])
  t.strictSame(rows.sort(), [
    [null, 'a body that was not recorded', undefined, 2],
    ['approved', null, ['approved'], 1],
    ['denied', null, ['denied'], 1],
  ])
  const shapes = `/agents/${review.bot.id}/shapes`
  t.equal((await review.call('GET', shapes, { token: reviewer.token })).status, 403)
  t.equal((await review.manage('DELETE', shapes)).status, 200)
  t.match(JSON.parse((await review.manage('GET', shapes)).text), { totalCount: 0, incompleteSince: null })
  t.equal((await review.manage('GET', '/agents/00000000-0000-4000-8000-000000000000/shapes')).status, 404)
})

async function flood({ bot, origin, proxy }: Review, count: number): Promise<void> {
  const all = Array.from({ length: count }, (_, n) => `${origin.url}/made-up-${n}`)
  for (let at = 0; at < count; at += 20) {
    const answers = await Promise.all(all.slice(at, at + 20).map(url => proxy(bot.token, url)))
    for (const answer of answers) await answer.body?.cancel()
  }
}

t.test('an agent that invents paths loses its own new shapes, and the secrets it sends are in no file', async t => {
  const config = {
    Recording: { ShapesPerAgent: 100 },
    System: { RateLimit: { Burst: 1_000, RequestsPerMinute: 9_000 } },
    // In a fleet too: the files of the store are read.
    Storage: {},
  }
  const review = await startReview(t, { config })
  const { bot, origin, proxy, manage } = review
  const secret = `ghp_${'aB3'.repeat(12)}`
  for (const path of [`/${secret}`, `/x?q=${secret}`, `/x?${secret}`, `/token/${secret.slice(4)}`]) {
    const answer = await proxy(bot.token, origin.url + path, { headers: { 'X-Other': secret } })
    await answer.body?.cancel()
  }
  await flood(review, 140)
  const read = async () => JSON.parse((await manage('GET', `/agents/${bot.id}/shapes?pageSize=200`)).text)
  const page = await eventually(read, ({ incompleteSince }) => incompleteSince !== null)
  t.equal(page.totalCount, 25, 'a quarter of its places')
  t.notMatch(JSON.stringify(page), /ghp_|aB3aB3/)
  t.ok(review.log.some(({ limit, agentId }) => limit === 'shapes' && agentId === bot.id))
  await review.close()
  const files = ['gateway.db', 'gateway.db-wal'].map(name => join(review.directory, 'data', name))
  const texts = files.filter(existsSync).map(file => readFileSync(file, 'latin1'))
  t.match(texts.join(''), /made-up-/, 'shapes are there')
  t.notMatch(texts.join(''), /ghp_aB3|aB3aB3/)
})

t.test('with Recording:Mode off nothing is recorded', async t => {
  const review = await startReview(t, { config: { Recording: { Mode: 'off' } } })
  const answer = await review.proxy(review.bot.token, review.origin.url)
  await answer.body?.cancel()
  await review.exchanges(1)
  t.match(JSON.parse((await review.manage('GET', `/agents/${review.bot.id}/shapes`)).text), { totalCount: 0 })
})
