import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startReview } from '../fixtures/review.ts'

const clock = createClock(Date.now())
const review = await startReview(t, { clock })
const { origin, proxy, newBot, hold, approve, call, manage, reviewer } = review

const post = async (token: string, path: string, init: RequestInit = {}) => {
  const answer = await proxy(token, origin.url + path, { method: 'POST', ...init })
  await answer.body?.cancel()
  return answer.status
}

/** A bot with a grant for /refunds/*, and the grant's id. */
async function granted(terms: object = { minutes: 10, maxUses: 2, path: '/refunds/*' }) {
  const bot = await newBot()
  const id = await hold('/refunds/1', { bot })
  const approved = await approve(id, { grant: terms })
  await approved.body?.cancel()
  origin.seen.length = 0
  return { bot, id, grant: approved.headers.get('gateway-hitl-grant')! }
}

const list = async (agentId: string) => (await call('GET', `/hitl/grants?agentId=${agentId}`)).json()

t.test('the next requests like it pass without asking, and are counted until none is left', async t => {
  const { bot, id, grant } = await granted()
  const shown = {
    id: grant,
    agentId: bot.id,
    agentName: 'tester',
    policyName: 'careful',
    rule: 'posts',
    method: 'POST',
    origin: origin.url,
    path: '/refunds/*',
    maxUses: 2,
    hitlId: id,
    grantedBy: reviewer.id,
  }
  t.match(await list(bot.id), [{ ...shown, uses: 0 }])
  t.equal(await post(bot.token, '/refunds/2?a=b'), 200)
  t.match(await list(bot.id), [{ ...shown, uses: 1 }])
  // Lines of several threads come in the order of none.
  const line = (await review.exchanges(2)).find(({ path }) => path === '/refunds/2')
  t.match(line, { grantId: grant, decision: 'Hitl', status: 200 })
  t.equal(await post(bot.token, '/refunds/3', { body: 'streamed' }), 200)
  t.equal(await post(bot.token, '/refunds/4'), 202)
  t.strictSame(
    origin.seen.map(({ target }) => target),
    ['/refunds/2?a=b', '/refunds/3'],
  )
  t.strictSame(await list(bot.id), [])
  const { items } = JSON.parse((await manage('GET', `/audit?subject=${grant}`)).text)
  t.match(items, [
    { action: 'hitl.grant.use', actor: bot.id, details: { path: '/refunds/3', uses: 2 } },
    { action: 'hitl.grant.use', actor: bot.id, details: { path: '/refunds/2', uses: 1, grantedBy: reviewer.id } },
    { action: 'hitl.grant', actor: reviewer.id, details: { grant: { maxUses: 2 } } },
  ])
})

t.test('a request of which nothing was sent uses no grant', async t => {
  const last = createServer((_req, res) => void res.writeHead(200, { Connection: 'close' }).end())
  await once(last.listen(0, '127.0.0.1'), 'listening')
  const send = (token: string) =>
    proxy(token, `http://127.0.0.1:${(address as AddressInfo).port}/refunds/1`, { method: 'POST' })
  const address = last.address()
  const bot = await newBot()
  const id = (await send(bot.token)).headers.get('gateway-hitl-id')!
  // One more than are used at a time: what is used up is soon removed, and nothing is given back to it then.
  t.equal((await approve(id, { grant: { minutes: 10, maxUses: 2 } })).status, 200)
  await once(last.close(), 'close')
  for (let attempt = 0; attempt < 2; attempt++) t.equal((await send(bot.token)).status, 502, 'not held')
  const [grant] = (await list(bot.id)) as { readonly id: string; readonly uses: number }[]
  t.equal(grant?.uses, 0)
  const { items } = JSON.parse((await manage('GET', `/audit?subject=${grant?.id}`)).text)
  const [give, use] = ['hitl.grant.giveBack', 'hitl.grant.use']
  t.match(
    items,
    [give, use, give, use, 'hitl.grant'].map(action => ({ action })),
  )
})

t.test('a grant reaches no other path, method, agent or rule', async t => {
  const { bot } = await granted({ minutes: 10, maxUses: 100, path: '/refunds/*' })
  for (const path of ['/refunds', '/refunds/1/2', '/refunds/', '/Refunds/1', '/refunds%2F1'])
    t.equal(await post(bot.token, path), 202, path)
  t.equal(await post(bot.token, '/refunds/1', { method: 'PUT' }), 202)
  t.equal(await post((await newBot()).token, '/refunds/1'), 202)
  t.equal(origin.seen.length, 0)
})

t.test('a grant is never stronger than a denial', async t => {
  const { bot } = await granted()
  t.equal(await post(bot.token, '/refunds/1', { method: 'DELETE' }), 403)
  const stricter = { default: 'Allow', rules: [{ name: 'posts', effect: 'Deny', conditions: [isPost] }] }
  await review.policy({ name: 'stricter', ...stricter })
  await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'stricter' })
  t.equal(await post(bot.token, '/refunds/1'), 403)
  await manage('POST', `/agents/${bot.id}/quarantine`)
  t.equal(await post(bot.token, '/refunds/1'), 403)
  t.equal(origin.seen.length, 0)
})

const isPost = { field: 'input.method', operator: 'eq', value: 'POST' }

t.test('a grant ends when it is revoked, and the trail says who did it', async t => {
  const { bot, grant } = await granted()
  t.equal((await call('DELETE', `/hitl/grants/${grant}`, { token: bot.token })).status, 403)
  t.equal((await call('DELETE', `/hitl/grants/${grant}`)).status, 200)
  t.equal((await call('DELETE', `/hitl/grants/${grant}`)).status, 404)
  t.equal(await post(bot.token, '/refunds/2'), 202)
  t.equal(origin.seen.length, 0)
  const { items } = JSON.parse((await manage('GET', `/audit?subject=${grant}&action=hitl.grant.revoke`)).text)
  t.match(items, [{ actor: reviewer.id, details: { before: { agentId: bot.id, uses: 0 } } }])
})

t.test('a grant ends with its time', async t => {
  const { bot } = await granted({ minutes: 1, maxUses: 100, path: '/refunds/*' })
  t.equal(await post(bot.token, '/refunds/2'), 200)
  clock.advance(60_000)
  t.equal(await post(bot.token, '/refunds/2'), 202)
  t.equal(origin.seen.length, 1)
})

t.test('what the default of a policy holds can be granted, until a rule says something of it', async t => {
  const policyName = await review.policy({ name: 'asks', default: 'Hitl' })
  const bot = await review.agent({ policyName })
  const id = await hold('/refunds/1', { bot })
  await (await approve(id, { grant: { minutes: 1, maxUses: 100 } })).body?.cancel()
  t.match(await list(bot.id), [{ policyName: 'asks', rule: null, path: '/refunds/1' }])
  t.equal(await post(bot.token, '/refunds/1'), 200)
  await manage('PUT', '/policies/asks', {
    default: 'Hitl',
    rules: [{ name: 'posts', effect: 'Hitl', conditions: [isPost] }],
  })
  t.equal(await post(bot.token, '/refunds/1'), 202)
})
