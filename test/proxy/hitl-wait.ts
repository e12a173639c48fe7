import t from 'tap'
import { startReview } from '../fixtures/review.ts'
import { followWaits } from '../fixtures/waits.ts'

const review = await startReview(t, {
  answer(req, res) {
    req.resume().on('end', () => {
      if (req.url === '/reset') res.destroy()
      else if (req.url === '/long') res.end('x'.repeat(2_000))
      else
        res.writeHead(201, ['X-Upstream', 'yes', 'Gateway-Hitl-Id', 'forged', 'Content-Type', 'text/plain']).end('made')
    })
  },
  config: { HumanInTheLoop: { MaxStoredResponseBytes: 1_000 } },
})
const { origin, proxy, newBot, waiting, approve, call } = review

const wait = (seconds: number, more: object = {}) => ({
  method: 'POST',
  body: 'a body',
  headers: { Prefer: `wait=${seconds}`, ...more },
})

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test("an agent that waits gets the upstream's answer on its own connection while a reviewer approves", async t => {
  const bot = await newBot()
  const answer = proxy(bot.token, `${origin.url}/things`, wait(55))
  const [item] = await waiting(bot, 1)
  t.equal(origin.seen.length, 0)
  const approved = await approve(item!.id)
  t.strictSame({ status: approved.status, text: await approved.text() }, { status: 201, text: 'made' })
  const { status, headers, text } = await answer.then(async one => ({ ...rest(one), text: await one.text() }))
  t.strictSame({ status, text }, { status: 201, text: 'made' })
  t.match(Object.fromEntries(headers), { 'x-upstream': 'yes', 'gateway-hitl-id': item!.id })
  t.equal(headers.get('gateway-error'), null)
  t.match(origin.seen, [{ method: 'POST', target: '/things', body: Buffer.from('a body') }])
  t.equal(origin.seen.length, 1)
  t.notOk(origin.seen[0]!.rawHeaders.join().includes(bot.token))
})

t.test('when the time is over it is 202, and says how long it waited', async t => {
  const bot = await newBot()
  const answer = await proxy(bot.token, `${origin.url}/things`, wait(1))
  t.equal(answer.status, 202)
  t.equal(answer.headers.get('preference-applied'), 'wait=1')
  t.match(answer.headers.get('location'), /^\/hitl\/status\/[\w-]{30}$/)
  t.equal((await waiting(bot, 1)).length, 1)
  t.equal(origin.seen.length, 0)
})

t.test('an upstream that fails at the approval is 502 for the agent too', async t => {
  const bot = await newBot()
  const answer = proxy(bot.token, `${origin.url}/reset`, wait(55))
  const [item] = await waiting(bot, 1)
  t.equal((await approve(item!.id)).status, 502)
  t.match(await (await answer).json(), { status: 502, code: 'upstream_failed' })
})

t.test("an answer too long to keep is the reviewer's, and the agent gets the reason", async t => {
  const bot = await newBot()
  const answer = proxy(bot.token, `${origin.url}/long`, wait(55))
  const [item] = await waiting(bot, 1)
  t.equal((await (await approve(item!.id)).text()).length, 2_000)
  const told = { status: 502, code: 'answer_not_kept', upstreamStatus: 200, detail: /MaxStoredResponseBytes/ }
  t.match(await (await answer).json(), told)
})

t.test('the status read waits too, and shows the outcome', async t => {
  const bot = await newBot()
  const id = await review.hold('/things', { bot })
  for (const path of [`/hitl/status/${id}`, `/hitl/${id}`]) {
    const now = await call('GET', path, { token: bot.token, headers: { Prefer: 'wait=0' } })
    t.match(await now.json(), { status: 'Pending' })
    t.equal(now.headers.get('preference-applied'), null)
  }
  const headers = { Prefer: 'respond-async, wait=600' }
  const begun = followWaits(t, 55)
  const reads = [`/hitl/status/${id}`, `/hitl/${id}`].map(path => call('GET', path, { token: bot.token, headers }))
  await begun(2)
  t.equal((await approve(id)).status, 201)
  for (const read of await Promise.all(reads)) {
    t.equal(read.headers.get('preference-applied'), 'wait=55')
    t.match(await read.json(), { id, status: 'Approved' })
  }
})

t.test('the same Idempotency-Key is the same held request; with another request it is refused', async t => {
  const bot = await newBot()
  const keyed = (more: object = {}) =>
    proxy(bot.token, `${origin.url}/things`, { ...wait(0, { 'Idempotency-Key': 'k1' }), ...more })
  const first = await keyed()
  const again = await keyed()
  t.equal(first.status, 202)
  t.equal(again.headers.get('location'), first.headers.get('location'))
  t.equal((await waiting(bot, 1)).length, 1)
  const headers = { Prefer: 'wait=1', 'Idempotency-Key': 'k1', traceparent: '00-0af7651916cd43dd8448eb211c80319c-1-01' }
  const retried = await keyed({ headers })
  t.equal(retried.headers.get('location'), first.headers.get('location'))
  const other = await keyed({ body: 'another body' })
  t.match(await other.json(), { status: 409, code: 'already_exists' })
  const stranger = await newBot()
  const theirs = await proxy(stranger.token, `${origin.url}/things`, wait(0, { 'Idempotency-Key': 'k1' }))
  t.not(theirs.headers.get('location'), first.headers.get('location'))
  await approve(first.headers.get('gateway-hitl-id')!).then(one => one.text())
  await keyed()
  t.equal(origin.seen.length, 1)
})

t.test('who waits while the gateway stops is answered, not cut off', async t => {
  const stopping = await startReview(t, { origin })
  const held = stopping.proxy(stopping.bot.token, `${origin.url}/things`, wait(55))
  const [item] = await stopping.waiting(stopping.bot, 1)
  const begun = followWaits(t, 55)
  const read = stopping.call('GET', `/hitl/status/${item!.id}`, { headers: { Prefer: 'wait=55' } })
  await begun(1)
  t.equal(await stopping.close(), 0)
  t.match(await held, { status: 202 })
  t.match(await (await read).json(), { status: 'Pending' })
})

const rest = ({ status, headers }: Response) => ({ status, headers })
