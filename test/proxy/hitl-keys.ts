/** Threat T06 of SECURITY.md. */
import t from 'tap'
import { startReview } from '../fixtures/review.ts'

const review = await startReview(t, {
  config: { HumanInTheLoop: { Threshold: 0.5 }, System: { RateLimit: { Burst: 1_000 } } },
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
