/** Held calls of clients that know nothing of the gateway: they wait on the connection, give up, and come again. */
import t from 'tap'
import { absolute, startForwardReview, valuesIn } from '../fixtures/forward.ts'
import { eventually } from '../fixtures/gateway.ts'

const review = await startForwardReview(t, {
  answer: (req, res) => void req.resume().on('end', () => res.writeHead(201, { 'Content-Length': 4 }).end('made')),
})
const { origin, waiting, approve, deny, call } = review

t.beforeEach(() => {
  origin.seen.length = 0
})

async function newPost(path: string, fields = '') {
  const bot = await review.newBot()
  const authorization = `Bearer ${bot.token}`
  return { bot, bytes: absolute(origin, { method: 'POST', path, authorization, body: 'a body', fields }) }
}

const statusOf = async (id: string) =>
  ((await (await call('GET', `/hitl/status/${id}`)).json()) as { status: string }).status

t.test('the call waits, and gets the answer of what was approved', async t => {
  const { bot, bytes } = await newPost('/waits')
  const answer = review.exchange(t, bytes)
  const [item] = await waiting(bot, 1)
  await approve(item!.id)
  t.match(await answer, /^HTTP\/1\.1 201 .*made$/s)
  t.strictSame(valuesIn(await answer, 'Gateway-Hitl-Id'), [item!.id])
  t.equal(origin.seen.length, 1)
  t.notOk(origin.seen[0]?.rawHeaders.some(text => text.includes(bot.token)))
})

t.test('what is denied is 403 with the comment', async t => {
  const { bot, bytes } = await newPost('/denied')
  const answer = review.exchange(t, bytes)
  const [item] = await waiting(bot, 1)
  await deny(item!.id, { comment: 'not today' })
  t.match(await answer, /^HTTP\/1\.1 403 .*"code":"hitl_denied".*not today/s)
  t.strictSame(origin.seen, [])
})

t.test('a client that leaves is taken to come again: the same request joins, also after the approval', async t => {
  const { bot, bytes } = await newPost('/again')
  const first = await review.open(t)
  first.write(bytes)
  const [item] = await waiting(bot, 1)
  first.socket.destroy()
  const second = await review.open(t)
  second.write(bytes)
  await eventually(
    () => review.log.filter(({ message, ending }) => message === 'exchange' && ending === 'suspended').length,
    count => count > 0,
  )
  const still = await waiting(bot, 1)
  t.strictSame(
    still.map(({ id }) => id),
    [item!.id],
    'one review, which waits',
  )
  second.socket.destroy()
  await eventually(
    () => review.gateway.inFlight(),
    count => count === 0,
  )
  t.equal(await statusOf(item!.id), 'Pending')
  await (await approve(item!.id)).text()
  t.match(await review.exchange(t, bytes), /^HTTP\/1\.1 201 .*made$/s)
  t.equal(origin.seen.length, 1, 'sent once')
})

t.test('a client that says how long it waits gets the id when that is over', async t => {
  for (const preference of ['respond-async', 'wait=1']) {
    const { bytes } = await newPost('/prefers', `Prefer: ${preference}\r\n`)
    const answer = await review.exchange(t, bytes)
    t.match(answer, /^HTTP\/1\.1 202 /, preference)
    t.strictSame(valuesIn(answer, 'Location'), [], 'a path would be one of the upstream')
  }
})

t.test('undecided after ForwardProxy:WaitSeconds, it gets 503 with Retry-After, and its retry joins', async t => {
  const config = { ForwardProxy: { WaitSeconds: 1 } }
  const short = await startForwardReview(t, { origin, config })
  const { token } = short.bot
  const bytes = absolute(origin, { method: 'POST', path: '/late', authorization: `Bearer ${token}`, body: 'a body' })
  const answer = await short.exchange(t, bytes)
  t.match(answer, /^HTTP\/1\.1 503 .*"code":"review_pending"/s)
  t.match(valuesIn(answer, 'Retry-After'), [/^\d+$/])
  const [item] = await short.waiting(short.bot, 1)
  t.match(await short.exchange(t, bytes), new RegExp(`"hitlId":"${item!.id}"`))
  await (await short.approve(item!.id)).text()
  t.match(await short.exchange(t, bytes), /^HTTP\/1\.1 201 .*made$/s)
  t.equal(origin.seen.length, 1)
  const rule = { name: 'hold', effect: 'Hitl', waitSeconds: 60, conditions: [] }
  const policyName = await short.policy({ name: 'long-wait', rules: [rule] })
  const { token: other } = await short.agent({ policyName })
  const longer = await short.exchange(t, absolute(origin, { path: '/longer', authorization: `Bearer ${other}` }))
  t.match(longer, /^HTTP\/1\.1 503 .*"code":"review_pending"/s, 'a rule does not prolong the wait')
})

t.test('a rule that says to wait less is followed', async t => {
  const rule = { name: 'hold', effect: 'Hitl', waitSeconds: 0, conditions: [] }
  const policyName = await review.policy({ name: 'no-wait', rules: [rule] })
  const { token } = await review.agent({ policyName })
  const bytes = absolute(origin, { path: '/now', authorization: `Bearer ${token}` })
  t.match(await review.exchange(t, bytes), /^HTTP\/1\.1 503 .*"code":"review_pending"/s)
})
