/** Threat T16 of SECURITY.md. */
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import t from 'tap'
import { startReview } from '../fixtures/review.ts'

const answer = randomBytes(70_000)
const review = await startReview(t, {
  answer(req, res) {
    req.resume().on('end', () => {
      if (req.url === '/reset') return void res.destroy()
      if (req.method === 'HEAD') return void res.writeHead(200, { 'Content-Length': 1_234 }).end()
      const fields = ['X-One', 'a', 'X-One', 'b', 'Set-Cookie', 'c=1', 'Gateway-Error', 'forged', 'Connection', 'X-Hop']
      res.writeHead(418, [...fields, 'X-Hop', 'gone', 'Content-Type', 'application/octet-stream']).end(answer)
    })
  },
})
const { origin, newBot, newReviewer, hold, approve, deny, call, manage } = review

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test("approve answers with the upstream's status, end-to-end headers and bytes", async t => {
  const body = randomBytes(50_000)
  const id = await hold('/things?a=%2F&b', { body, headers: { 'X-Note': 'kept', Connection: 'close' } })
  t.equal(origin.seen.length, 0)
  const approved = await approve(id, { comment: 'fine' })
  t.equal(approved.status, 418)
  t.strictSame(Buffer.from(await approved.arrayBuffer()), answer)
  t.match(Object.fromEntries(approved.headers), {
    'x-one': 'a, b',
    'content-type': 'application/octet-stream',
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'gateway-hitl-id': id,
    'gateway-hitl-digest': /^[0-9a-f]{64}$/,
  })
  for (const name of ['gateway-error', 'x-hop']) t.equal(approved.headers.get(name), null, name)
  t.equal(origin.seen.length, 1)
  const [seen] = origin.seen
  t.match(seen, { method: 'POST', target: '/things?a=%2F&b', headers: { 'x-note': 'kept' } })
  t.equal(seen!.sha256, createHash('sha256').update(body).digest('hex'))
  const names = seen!.rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
  t.notOk(names.includes('gateway-authorization'))
})

t.test('a second verdict is 409 with the outcome on record', async t => {
  const id = await hold('/things')
  await (await approve(id, { comment: 'mine' })).arrayBuffer()
  const told = { code: 'already_decided', hitlStatus: 'Approved', comment: 'mine', decidedBy: review.reviewer.id }
  for (const again of [await approve(id), await deny(id)]) {
    t.equal(again.status, 409)
    t.match(await again.json(), told)
  }
  t.equal(origin.seen.length, 1)
})

t.test('a denied request is never sent, and its agent and the audit trail get the verdict', async t => {
  const id = await hold('/things')
  t.match(await (await deny(id, { resend: true })).json(), { status: 400, errors: [{ field: 'resend' }] })
  const denied = await deny(id, { comment: 'no' })
  t.strictSame({ status: denied.status, text: await denied.text() }, { status: 200, text: '' })
  const told = await call('GET', `/hitl/status/${id}`, { token: review.bot.token })
  t.match(await told.json(), { status: 'Denied', request: { comment: 'no' } })
  t.match(await (await approve(id)).json(), { status: 409, hitlStatus: 'Denied' })
  t.equal(origin.seen.length, 0)
  const { items } = JSON.parse((await manage('GET', `/audit?subject=${id}&action=hitl.deny`)).text)
  t.match(items, [{ actor: review.reviewer.id, subject: id, details: { comment: 'no' } }])
})

t.test('of fifty approvals at once one sends', async t => {
  const id = await hold('/things')
  const approvals = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const { status, headers, ...rest } = await approve(id)
      return { status, rest, isOurs: headers.get('gateway-error') === 'already_decided' }
    }),
  )
  t.equal(approvals.filter(({ status, isOurs }) => status === 418 && !isOurs).length, 1)
  t.equal(approvals.filter(({ status, isOurs }) => status === 409 && isOurs).length, 49)
  t.equal(origin.seen.length, 1)
})

t.test('an upstream that is down is 502, and the request waits again', async t => {
  const closed = createServer()
  await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise(resolve => closed.close(resolve))
  const bot = await newBot()
  const held = await review.proxy(bot.token, `http://127.0.0.1:${port}/`, { method: 'POST' })
  const id = held.headers.get('gateway-hitl-id')!
  const approved = await approve(id)
  t.equal(approved.status, 502)
  t.match(await approved.json(), { code: 'upstream_failed' })
  t.match(await (await call('GET', `/hitl/${id}`)).json(), {
    status: 'Pending',
    pending: { replay: null, approvedBy: [], decidedBy: null },
  })
})

t.test('a request that was sent and not answered is 502, and sent again only when asked for', async t => {
  const id = await hold('/reset')
  t.match(await (await approve(id)).json(), { status: 502, code: 'upstream_failed' })
  t.match(await (await call('GET', `/hitl/${id}`)).json(), { status: 'Approved', pending: { replay: 'failed' } })
  t.match(await (await approve(id)).json(), { status: 409, replay: 'failed' })
  t.equal(origin.seen.length, 1)
  t.match(await (await approve(id, { resend: true })).json(), { status: 502 })
  t.equal(origin.seen.length, 2)
  t.match(await (await call('GET', `/hitl/${id}`)).json(), { pending: { replay: 'failed', attempt: 2 } })
})

t.test('the request of an agent that was revoked meanwhile is not sent', async t => {
  const bot = await newBot()
  const id = await hold('/things', { bot })
  t.equal((await manage('POST', `/agents/${bot.id}/revoke`)).status, 200)
  t.match(await (await approve(id)).json(), { status: 403, code: 'agent_revoked' })
  t.match(await (await call('GET', `/hitl/${id}`)).json(), { status: 'Pending' })
  t.equal(origin.seen.length, 0)
})

t.test('nobody decides a request of their own', async t => {
  const own = await review.agent({ policyName: 'careful', roles: ['agent', 'reviewer'] })
  const id = await hold('/things', { bot: own })
  for (const decide of [approve, deny]) {
    t.match(await (await decide(id, {}, own.token)).json(), { status: 403, code: 'own_request' })
  }
  t.equal(origin.seen.length, 0)
  t.equal((await approve(id)).status, 418)
})

t.test('a rule that asks for two needs two different reviewers', async t => {
  const id = await hold('/things', { method: 'PUT' })
  const first = await approve(id)
  t.equal(first.status, 202)
  t.match(await first.json(), { id, status: 'Pending', approvals: 1, approvalsNeeded: 2 })
  t.match(await (await approve(id)).json(), { approvals: 1 })
  t.equal(origin.seen.length, 0)
  const second = await newReviewer()
  t.equal((await approve(id, {}, second.token)).status, 418)
  t.equal(origin.seen.length, 1)
})

t.test('the answer to a HEAD request comes whole although it names a length', async t => {
  const bot = await review.agent({ policyName: await review.policy({ name: 'ask', default: 'Hitl' }) })
  const held = await review.proxy(bot.token, `${origin.url}/things`, { method: 'HEAD' })
  const id = held.headers.get('gateway-hitl-id')!
  const approved = await approve(id)
  t.strictSame({ status: approved.status, text: await approved.text() }, { status: 200, text: '' })
  const kept = await call('GET', `/hitl/${id}/response`, { token: bot.token })
  t.strictSame({ status: kept.status, text: await kept.text() }, { status: 200, text: '' })
})

t.test('a comment has at most 2000 characters, and a grant its bounds', async t => {
  const id = await hold('/things')
  const refused = [
    { comment: 'x'.repeat(2_001) },
    { comment: 5 },
    { comment: null },
    { unknown: true },
    { grant: {} },
    { grant: { minutes: 0, maxUses: 1 } },
    { grant: { minutes: 481, maxUses: 1 } },
    { grant: { minutes: 1, maxUses: 1_001 } },
    { grant: { minutes: 1, maxUses: 1, path: '/elsewhere' } },
    { grant: { minutes: 1, maxUses: 1, path: 'things' } },
  ]
  for (const body of refused) {
    const answer = await approve(id, body)
    t.equal(answer.status, 400, JSON.stringify(body).slice(0, 60))
    t.match(await answer.json(), { code: 'invalid_body', errors: [{ field: String }] })
  }
  t.equal((await deny(id, { comment: 'x'.repeat(2_001) })).status, 400)
  t.equal(origin.seen.length, 0)
  t.equal((await approve(id, { comment: '\u{1F600}'.repeat(2_000) })).status, 418)
})
