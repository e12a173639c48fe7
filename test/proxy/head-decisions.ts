import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const rules = [
  {
    name: 'no-drop',
    priority: 100,
    effect: 'Deny',
    conditions: [
      { field: 'input.host', operator: 'eq', value: '127.0.0.1' },
      { field: 'input.path', operator: 'startsWith', value: '/sql' },
      { field: 'input.body.cmd', operator: 'eq', value: 'drop' },
    ],
  },
  {
    name: 'never-admin',
    priority: 90,
    effect: 'Deny',
    conditions: [{ field: 'input.path', operator: 'startsWith', value: '/admin' }],
  },
]
const gateway = await startGateway(t, {
  config: {
    Policies: [{ name: 'allow-all', default: 'Allow', rules }],
    Proxy: { MaxEvaluatedBodyBytes: 65_536 },
  },
})
const { token } = await gateway.agent()
const auth = { 'Gateway-Authorization': `Bearer ${token}` }
const json = { ...auth, 'Content-Type': 'application/json' }

t.test('a body that no rule can care about streams: the upstream has its start before its end is sent', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.once('data', () => res.end('started'))
  })
  const call = request(`${gateway.url}/proxy/${origin.url}/files`, { method: 'POST', headers: json })
  call.write('{"cmd":')
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  t.equal(answer.statusCode, 200)
  t.equal(origin.seen[0]?.done, false)
  call.destroy()
})

t.test('what the head denies is refused before the upload ends', async t => {
  const origin = await startOrigin(t)
  const raw = await openRaw(t, gateway.port)
  raw.write(
    `POST /proxy/${origin.url}/admin HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\nContent-Length: 1000000\r\n\r\n{`,
  )
  const text = await raw.closed()
  t.match(text, /^HTTP\/1.1 403 /)
  t.match(text, /"code":"policy_denied"/)
  t.strictSame(origin.seen, [])
})

t.test('a body that a rule reads is held, decided, and sent byte for byte', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume().on('end', () => res.end('ran'))
  })
  const sql = `${origin.url}/sql`
  const body = '{ "cmd" : "select",  "n": 1.0e1 }\n'
  const allowed = await gateway.proxy(token, sql, { method: 'POST', headers: json, body })
  t.equal(await allowed.text(), 'ran')
  t.equal(origin.seen[0]?.body.toString(), body)
  const denied = await gateway.proxy(token, sql, { method: 'POST', headers: json, body: '{"cmd":"drop"}' })
  t.equal(denied.status, 403)
  t.equal(origin.seen.length, 1)
})

for (const [what, headers, body] of [
  ['compressed', { 'Content-Encoding': 'gzip' }, '{"cmd":"list"}'],
  ['malformed', {}, '{"cmd":"list"'],
  ['with a key twice', {}, '{"cmd":"list","cmd":"list"}'],
  ['in UTF-16', {}, Buffer.from('\ufeff{"cmd":"list"}', 'utf16le')],
  ['too deep', {}, `${'['.repeat(100)}${']'.repeat(100)}`],
  ['longer than what is held', {}, `{"cmd":"list","pad":"${'x'.repeat(70_000)}"}`],
] as const) {
  t.test(`a body ${what} does not blind the rule: it applies`, async t => {
    const origin = await startOrigin(t)
    const answer = await gateway.proxy(token, `${origin.url}/sql`, {
      method: 'POST',
      headers: { ...json, ...headers },
      body,
    })
    t.equal(answer.status, 403)
    t.strictSame(origin.seen, [])
  })
}

t.test('a long body that is allowed all the same is sent whole: what was held, and the rest behind it', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume().on('end', () => res.end('ok'))
  })
  const name = await gateway.policy({
    name: 'reads-but-allows',
    default: 'Allow',
    onUnreadable: 'noMatch',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.cmd', operator: 'eq', value: 'drop' }] }],
  })
  const reader = await gateway.agent({ policyName: name })
  const body = Buffer.alloc(300_000, 'abcdefghij')
  const answer = await gateway.proxy(reader.token, origin.url, { method: 'POST', headers: json, body })
  t.equal(await answer.text(), 'ok')
  t.equal(origin.seen[0]?.body.equals(body), true)
})
