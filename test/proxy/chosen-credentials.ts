/** Rules that choose among the credentials of a request. Threat T83 of SECURITY.md. */
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const origin = await startOrigin(t)
const entry = { Host: `127.0.0.1:${origin.port}`, AllowHttp: true }
const at = (path: string) => ({ field: 'input.path', operator: 'eq', value: path })
const clock = createClock(Date.UTC(2026, 0, 5, 10, 59, 30))
const gateway = await startGateway(t, {
  clock,
  env: { READ: 'key-that-reads', REFUND: 'key-that-refunds', OTHER: 'key-of-another' },
  config: {
    Policies: [
      { name: 'guardrail', default: 'Allow', rules: [{ name: 'payments', effect: 'Hitl', conditions: [at('/pay')] }] },
    ],
    Policy: { Global: 'guardrail' },
    Secrets: ['READ', 'REFUND', 'OTHER'].map(name => ({ Name: name.toLowerCase(), FromEnv: name })),
    Credentials: ['read', 'refund', 'other'].map(name => ({ Name: name, Secret: name })),
    Upstreams: [
      { ...entry, Credential: 'read' },
      { ...entry, Credential: 'refund' },
    ],
  },
})
await gateway.policy({
  ...{ name: 'shop', default: 'Allow' },
  rules: [
    { name: 'refund', effect: 'Allow', credential: 'refund', conditions: [at('/refund')] },
    { name: 'held', effect: 'Hitl', credential: 'refund', conditions: [at('/held')] },
    {
      ...{ name: 'late shift', effect: 'Allow', credential: 'refund' },
      conditions: [at('/shift'), { field: 'time.hour', operator: 'gte', value: 11 }],
    },
    { name: 'early shift', effect: 'Allow', credential: 'read', conditions: [at('/shift')] },
    {
      ...{ name: 'pay', effect: 'Allow', credential: 'refund' },
      conditions: [at('/pay'), { field: 'input.body.kind', operator: 'eq', value: 'refund' }],
    },
    { name: 'wide', effect: 'Allow', credential: 'other', conditions: [at('/wide')] },
    {
      ...{ name: 'by body', effect: 'Allow', credential: 'refund' },
      conditions: [at('/body'), { field: 'input.body.kind', operator: 'eq', value: 'refund' }],
    },
  ],
})
const bot = await gateway.agent({ policyName: 'shop' })
const call = (path: string, init?: RequestInit) => gateway.proxy(bot.token, `${origin.url}${path}`, init)
const sent = () => origin.seen.at(-1)?.headers.authorization

t.test('a request gets the credential of its rule, and without one the first that fits', async t => {
  await call('/orders')
  t.equal(sent(), 'key-that-reads')
  await call('/refund')
  t.equal(sent(), 'key-that-refunds')
})

t.test('the body decides where a rule on it names one', async t => {
  const headers = { 'content-type': 'application/json' }
  await call('/body', { method: 'POST', headers, body: '{"kind":"refund"}' })
  t.equal(sent(), 'key-that-refunds')
  await call('/body', { method: 'POST', headers, body: '{"kind":"note"}' })
  t.equal(sent(), 'key-that-reads')
})

t.test('a rule adds no credential that Upstreams does not give', async t => {
  const before = origin.seen.length
  const answer = await call('/wide')
  t.equal(answer.status, 403)
  t.match(await answer.json(), { code: 'credential_conflict', detail: /the credential other to no request/ })
  t.equal(origin.seen.length, before)
})

t.test('reviewers see the one that an approved request then gets', async t => {
  const held = await call('/held', { method: 'POST', body: 'x' })
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  const { pending } = JSON.parse((await gateway.manage('GET', `/hitl/${id}`)).text)
  t.strictSame(pending.addedFields, ['Authorization (refund)'])
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.equal(sent(), 'key-that-refunds')
})

t.test('a grant lets no request pass with another credential than that of the approved one', async t => {
  const buyer = await gateway.agent({ policyName: 'shop' })
  const pay = (kind: string) => {
    const headers = { 'content-type': 'application/json' }
    return gateway.proxy(buyer.token, `${origin.url}/pay`, { method: 'POST', headers, body: JSON.stringify({ kind }) })
  }
  const held = await pay('test')
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  const approved = await gateway.manage('POST', `/hitl/${id}/approve`, { grant: { minutes: 10, maxUses: 9 } })
  t.equal(approved.status, 200)
  t.equal((await pay('test')).status, 200)
  t.equal(sent(), 'key-that-reads')
  const before = origin.seen.length
  t.equal((await pay('refund')).status, 202, 'the rule that held it is the same')
  t.equal(origin.seen.length, before)
})

t.test('a decision that is made again with the body chooses again', async t => {
  const raw = await openRaw(t, gateway.port)
  const fields = {
    Host: 'gateway',
    'Gateway-Authorization': `Bearer ${bot.token}`,
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'Content-Length': '2',
    Expect: '100-continue',
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  raw.write(`POST /proxy/${origin.url}/shift HTTP/1.1\r\n${lines.join('')}\r\n`)
  await raw.until(/100 Continue\r\n\r\n$/)
  clock.jump(60_000)
  raw.write('{}')
  await raw.until(/HTTP\/1.1 200 /)
  t.equal(sent(), 'key-that-refunds')
})

t.test('a policy that names a credential which is not there is warned of, and denies', async t => {
  const rules = [{ name: 'all', effect: 'Allow', credential: 'gone', conditions: [] }]
  const made = await gateway.manage('POST', '/policies', { name: 'gone', rules })
  t.equal(made.status, 201)
  const checked = await gateway.manage('POST', '/policies/check', { policy: { name: 'gone', rules } })
  t.match(checked.text, /W_UNKNOWN_CREDENTIAL/)
  const lost = await gateway.agent({ policyName: 'gone' })
  t.equal((await gateway.proxy(lost.token, origin.url)).headers.get('gateway-error'), 'policy_denied')
})
