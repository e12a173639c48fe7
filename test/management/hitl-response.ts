/** Threat T34 of SECURITY.md. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { answered } from '../fixtures/hitl.ts'

const control = await startControl(t)
const { call, person, suspend, upstream } = control

async function* chunks(bytes: Buffer) {
  yield bytes
}

async function start(answer: object = {}) {
  upstream.answer = async () => ({ ...answered('<script>'), ...answer }) as never
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const id = await suspend(bot.agent)
  const read = (token = bot.token) => call('GET', `/hitl/${id}/response`, { token })
  return { id, bot, reviewer, read, approve: () => call('POST', `/hitl/${id}/approve`, { token: reviewer.token }) }
}

t.test('the agent reads the answer of the upstream, made harmless for a browser', async t => {
  const rawHeaders = [
    'Content-Type',
    'text/html',
    'Content-Length',
    '8',
    'X-Upstream',
    'yes',
    'Cache-Control',
    'public',
  ]
  const { id, read, approve } = await start({ status: 201, rawHeaders: [...rawHeaders, 'Gateway-Error', 'forged'] })
  await approve()
  const { status, text, headers } = await read()
  t.strictSame({ status, text }, { status: 201, text: '<script>' })
  t.match(Object.fromEntries(headers), {
    'content-type': 'text/html',
    'content-length': '8',
    'x-upstream': 'yes',
    'cache-control': 'no-store',
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'gateway-hitl-id': id,
  })
  t.equal(headers.get('gateway-error'), null)
})

t.test('bytes come as they were', async t => {
  const bytes = randomBytes(5_000)
  const { id, bot, approve } = await start({ body: chunks(bytes) })
  await approve()
  const headers = { authorization: `Bearer ${bot.token}` }
  const answer = await fetchDocumented(`${control.url}/hitl/${id}/response`, { headers })
  t.strictSame(Buffer.from(await answer.arrayBuffer()), bytes)
})

t.test('an answer without a body has none, and no length', async t => {
  const { read, approve } = await start({ status: 204, rawHeaders: [], body: chunks(Buffer.alloc(0)) })
  await approve()
  const { status, headers } = await read()
  t.strictSame({ status, length: headers.get('content-length') }, { status: 204, length: null })
})

t.test("it is nobody else's: other agents, reviewers and admins get 404", async t => {
  const { read, approve, reviewer } = await start()
  await approve()
  for (const token of [(await person('agent')).token, reviewer.token, control.admin.token])
    t.match(await read(token), { status: 404, json: { code: 'not_found' } })
})

t.test('without an answer it is 404: not decided, denied, failed, too long to keep, unknown', async t => {
  const pending = await start()
  t.match(await pending.read(), { status: 404, json: { detail: /GET \/hitl\/status/ } })
  await call('POST', `/hitl/${pending.id}/deny`, { token: pending.reviewer.token })
  t.match(await pending.read(), { status: 404 })
  const long = await start({ body: chunks(Buffer.alloc(10_001)) })
  await long.approve()
  t.match(await long.read(), { status: 404 })
  t.match(await call('GET', '/hitl/unknown/response', { token: long.bot.token }), { status: 404 })
})
