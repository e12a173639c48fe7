/** Threat T06 of SECURITY.md. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { openRaw } from '../fixtures/raw.ts'
import { startReview } from '../fixtures/review.ts'

const review = await startReview(t, {
  config: {
    HumanInTheLoop: { Threshold: 0.5 },
    System: { RateLimit: { Burst: 1_000 }, Server: { Threads: 1 } },
  },
  answer: (req, res) => {
    if (req.url === '/reset') res.destroy()
    else res.end('hello from upstream')
  },
})
const { origin, newBot, hold, approve, manage, proxy } = review
const grant = { minutes: 10, maxUses: 100, path: '/**' }

/** One POST; what the agent is told. */
async function post(token: string, path: string, key?: string, init: RequestInit = {}) {
  const headers = new Headers(init.headers)
  if (key !== undefined) headers.set('Idempotency-Key', key)
  const answer = await proxy(token, origin.url + path, { method: 'POST', ...init, headers })
  const text = await answer.text()
  return {
    status: answer.status,
    code: answer.headers.get('gateway-error'),
    id: answer.headers.get('gateway-hitl-id'),
    text,
  }
}

/** A bot whose POSTs a grant lets pass. */
async function granted(more: object = {}) {
  const bot = await newBot()
  await (await approve(await hold('/first', { bot }), { grant: { ...grant, ...more } })).body?.cancel()
  origin.seen.length = 0
  return bot
}

t.test('a key of a held request is not sent again by a grant', async t => {
  const bot = await newBot()
  const held = await post(bot.token, '/a', 'k1')
  await (await approve(held.id!, { grant })).body?.cancel()
  t.equal(origin.seen.at(-1)?.target, '/a')
  origin.seen.length = 0
  t.match(await post(bot.token, '/a', 'k1'), { status: 202, id: held.id }, 'the same request is the same held one')
  t.match(await post(bot.token, '/b', 'k1'), { status: 409, code: 'already_exists' })
  t.strictSame(origin.seen, [])
  t.equal((await post(bot.token, '/a', 'k2')).status, 200, 'another key is another request')
})

t.test('a key that a grant let pass is sent once, however many ask at once', async t => {
  const bot = await granted()
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(bot.token, '/a', 'k')))
  t.equal(answers.filter(({ status }) => status === 200).length, 1)
  t.equal(answers.filter(({ status, code }) => status === 409 && code === 'already_exists').length, 19)
  t.equal(origin.seen.length, 1)
})

t.test('without a grant, the key of a granted request is not held either', async t => {
  const bot = await granted({ maxUses: 1 })
  t.equal((await post(bot.token, '/a', 'k')).status, 200)
  t.match(await post(bot.token, '/a', 'k'), { status: 409, code: 'already_exists' })
  t.equal((await post(bot.token, '/a')).status, 202)
  t.equal(origin.seen.length, 1)
})

t.test('a rule that allows sends no key that is held, sent after approval, or was used by a grant', async t => {
  const bot = await granted({ maxUses: 1 })
  t.equal((await post(bot.token, '/granted', 'k1')).status, 200)
  const pending = await post(bot.token, '/pending', 'k2')
  const sent = await post(bot.token, '/sent', 'k3')
  await (await approve(sent.id!)).body?.cancel()
  t.equal((await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'allow-all' })).status, 200)
  origin.seen.length = 0
  for (const [path, key, hitlId] of [
    ['/granted', 'k1', undefined],
    ['/pending', 'k2', pending.id],
    ['/sent', 'k3', sent.id],
  ] as const) {
    const again = await post(bot.token, path, key)
    t.match(again, { status: 409, code: 'already_exists' }, path)
    t.equal(JSON.parse(again.text).hitlId, hitlId ?? undefined)
  }
  t.strictSame(origin.seen, [])
  t.equal((await post(bot.token, '/new', 'k4')).status, 200)
  t.equal((await post(bot.token, '/new', 'k4')).status, 200, 'what was only ever allowed is for the upstream to tell')
})

t.test('a grant passes nothing that the risk of its body would hold', async t => {
  const bot = await granted()
  const secret = { body: JSON.stringify({ note: `key AKIA${'ABCDEFGHIJKLMNOP'}`, more: 'x' }) }
  const headers = { 'Content-Type': 'application/json' }
  t.equal((await post(bot.token, '/a', undefined, { headers, body: '{"note":"harmless"}' })).status, 200)
  t.equal((await post(bot.token, '/a', undefined, { headers, ...secret })).status, 202)
  t.equal(origin.seen.length, 1)
  t.equal(origin.seen[0]?.body.toString(), '{"note":"harmless"}', 'what was read is sent')
})

t.test('several keys are none: 400, and nothing is sent or held', async t => {
  const bot = await granted()
  const raw = await openRaw(t, review.port)
  const key = 'Idempotency-Key: k\r\n'
  const head = `Host: x\r\nGateway-Authorization: Bearer ${bot.token}\r\nContent-Length: 0\r\n`
  raw.write(`POST /proxy/${origin.url}/a HTTP/1.1\r\n${head}${key}${key.toLowerCase()}\r\n`)
  t.match(await raw.closed(), /^HTTP\/1\.1 400 .*"code":"invalid_request".*at most one Idempotency-Key header/s)
  t.equal((await review.waiting(bot, 0)).length, 0)
  t.strictSame(origin.seen, [])
})

t.test('a key is free again when nothing was sent: the upstream could not be reached', async t => {
  const shop = createServer((_, res) => res.end('done'))
  const listen = (port: number) => new Promise<void>(resolve => shop.listen(port, '127.0.0.1', resolve))
  const close = () => new Promise(resolve => shop.close(resolve).closeAllConnections())
  await listen(0)
  t.teardown(close)
  const { port } = shop.address() as AddressInfo
  const bot = await newBot()
  const send = (key: string) =>
    proxy(bot.token, `http://127.0.0.1:${port}/x`, { method: 'POST', headers: { 'Idempotency-Key': key } })
  const id = (await send('first')).headers.get('gateway-hitl-id')!
  t.equal((await approve(id, { grant })).status, 200)
  await close()
  t.equal((await send('k')).status, 502)
  t.equal((await send('k')).status, 502, 'not 409')
  await listen(port)
  t.equal((await send('k')).status, 200)
  t.equal((await send('k')).status, 409)
})

t.test('a key is taken when something was sent, whatever came', async t => {
  const bot = await granted()
  t.equal((await post(bot.token, '/reset', 'k')).status, 502)
  t.match(await post(bot.token, '/reset', 'k'), { status: 409, code: 'already_exists' })
  t.equal(origin.seen.length, 1)
})
