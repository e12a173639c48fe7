/** Requests in absolute form, as clients with HTTP_PROXY send them (RFC 9112 section 3.2.2). */
import t from 'tap'
import { absolute, basic, startForward, valuesIn } from '../fixtures/forward.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t, (req, res) => {
  req.resume().on('end', () => res.end('hello from upstream'))
})

t.beforeEach(() => {
  origin.seen.length = 0
})

for (const threads of [1, 2]) {
  t.test(`with ${threads === 1 ? 'one thread' : 'two threads'}`, async t => {
    const config = { System: { Server: { Threads: threads } } }
    const gateway = await startForward(t, { config })
    const { token } = await gateway.agent()
    const authorization = `Bearer ${token}`

    t.test('a request reaches the upstream of its URL, with the Host of the URL and without the token', async t => {
      const answer = await gateway.exchange(
        t,
        absolute(origin, { path: '/things?x=1', host: 'another.example', authorization, fields: 'X-Own: yes\r\n' }),
      )
      t.match(answer, /^HTTP\/1\.1 200 .*hello from upstream$/s)
      t.equal(valuesIn(answer, 'Gateway-Request-Id').length, 1)
      const [seen] = origin.seen
      t.match(seen, {
        method: 'GET',
        target: '/things?x=1',
        headers: { host: `127.0.0.1:${origin.port}`, 'x-own': 'yes' },
      })
      t.notOk(
        seen?.rawHeaders.some(text => text.includes(token)),
        'the token does not leave',
      )
      t.equal(seen?.headers['proxy-authorization'], undefined)
    })

    t.test('a body is forwarded, and the connection serves further requests', async t => {
      const client = await gateway.open(t)
      for (const body of ['first', 'second']) {
        const bytes = absolute(origin, { method: 'POST', path: `/${body}`, authorization, body })
        client.write(bytes.replace('Connection: close\r\n', 'Proxy-Connection: keep-alive\r\n'))
        await client.until(new RegExp(`(?:hello from upstream[^]*){${origin.seen.length + 1}}`))
      }
      t.match(
        origin.seen.map(({ target, body }) => [target, body.toString()]),
        [
          ['/first', 'first'],
          ['/second', 'second'],
        ],
      )
      t.equal(origin.seen[0]?.headers['proxy-connection'], undefined)
    })

    t.test('the token may be a key of the agent, the password of Basic with any name, or its name alone', async t => {
      const { id } = await gateway.agent()
      const made = await gateway.manage('POST', `/agents/${id}/keys`, { name: 'proxy' })
      const { key } = JSON.parse(made.text)
      for (const value of [
        `Bearer ${key}`,
        basic('anybody', token),
        basic('', key),
        basic(key, ''),
        `bearer  ${token}`,
      ]) {
        const answer = await gateway.exchange(t, absolute(origin, { authorization: value }))
        t.match(answer, /^HTTP\/1\.1 200 /, value.slice(0, 9))
      }
    })

    t.test('HTTP/1.0 without Host is served', async t => {
      const line = `GET ${origin.url}/old HTTP/1.0\r\nProxy-Authorization: ${authorization}\r\n\r\n`
      t.match(await gateway.exchange(t, line), /^HTTP\/1\.1 200 .*hello from upstream$/s)
      t.match(origin.seen, [{ target: '/old', headers: { host: `127.0.0.1:${origin.port}` } }])
    })
  })
}

t.test('the policy decides on the URL, and the line of the log names the road', async t => {
  const gateway = await startForward(t)
  const condition = { field: 'input.path', operator: 'startsWith', value: '/secret' }
  const credential = { field: 'input.headers.proxy-authorization', operator: 'contains', value: 'Bearer' }
  await gateway.policy({
    name: 'no-secrets',
    default: 'Allow',
    rules: [
      { name: 'secret', effect: 'Deny', conditions: [condition] },
      { name: 'token', effect: 'Deny', conditions: [credential] },
    ],
  })
  const { token } = await gateway.agent({ policyName: 'no-secrets' })
  const authorization = `Bearer ${token}`
  t.match(await gateway.exchange(t, absolute(origin, { authorization })), /^HTTP\/1\.1 200 /, 'no rule sees the token')
  const refused = await gateway.exchange(t, absolute(origin, { path: '/secret/1', authorization }))
  t.match(refused, /^HTTP\/1\.1 403 Denied by policy: .*"code":"policy_denied"/s)
  t.match(valuesIn(refused, 'Gateway-Error'), ['policy_denied'])
  t.match(await gateway.exchanges(2), [
    { road: 'forward', origin: origin.url, path: '/', status: 200 },
    { road: 'forward', origin: origin.url, path: '/secret/1', status: 403, rule: 'secret' },
  ])
  await gateway.proxy(token, origin.url)
  t.equal((await gateway.exchanges(3))[2]?.road, undefined, 'a call of /proxy/ has none')
})

t.test('an https URL in absolute form is served as well', async t => {
  const gateway = await startForward(t)
  const { token } = await gateway.agent()
  const url = `https://127.0.0.1:${origin.port}`
  const answer = await gateway.exchange(t, absolute({ url, port: origin.port }, { authorization: `Bearer ${token}` }))
  t.match(answer, /^HTTP\/1\.1 502 .*"code":"upstream_failed"/s, 'the upstream speaks no TLS')
  t.match(await gateway.exchanges(1), [{ road: 'forward', origin: url }])
})

t.test('WebSockets are opened where Proxy:AllowUpgrade has the host', async t => {
  const gateway = await startForward(t, { config: { Proxy: { AllowUpgrade: ['sockets.example'] } } })
  const { token } = await gateway.agent()
  const fields = 'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
  const bytes = absolute(origin, { authorization: `Bearer ${token}`, fields }).replace('n: close', 'n: Upgrade')
  t.match(await gateway.exchange(t, bytes), /^HTTP\/1\.1 426 .*"code":"websocket_not_supported"/s)
})
