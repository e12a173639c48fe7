/** Threats T02, T13, T22 and T62 of SECURITY.md, on the hosts of `Hosts`. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { cpuTimeOf } from '../fixtures/cpu-time.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const origin = await startOrigin(t, (req, res) => {
  const headers: Record<string, string> = {}
  const { to, cookie, challenge } = Object.fromEntries(new URL(req.url ?? '', 'http://a').searchParams)
  if (to !== undefined) headers['Location'] = to
  if (cookie !== undefined) headers['Set-Cookie'] = cookie
  if (challenge !== undefined) headers['WWW-Authenticate'] = challenge
  res.writeHead(challenge === undefined ? 200 : 401, headers).end(`upstream ${req.url}`)
})
const resource = await startOrigin(t, (req, res) => {
  const [path = '', part = '/mcp'] = (req.url ?? '').split('?')
  const body = JSON.stringify({ resource: `${resource.url}${part}`, authorization_servers: ['https://id.test'] })
  const isPlain = path === '/.well-known/oauth-protected-resource/mcp' || path === '/custom/meta'
  res.writeHead(200, { 'Content-Type': 'application/json', ETag: '"1"' }).end(isPlain ? body : `${body} not JSON`)
})
const second = await startOrigin(t)
const third = await startOrigin(t)
const gateway = await startGateway(t, {
  config: {
    System: { PublicUrl: 'http://gateway.test:7080' },
    Hosts: [
      { Host: 'One.gateway.test', Upstream: origin.url },
      { Host: 'two.gateway.test', Upstream: second.url },
      { Host: 'mcp.gateway.test', Upstream: resource.url },
      { Host: '[::1]', Upstream: second.url },
    ],
  },
})
const { port } = gateway
const { token } = await gateway.agent()
const bearer = ['Authorization', `Bearer ${token}`]

interface Sent {
  readonly host?: string | undefined
  readonly path?: string
  readonly method?: string
  readonly fields?: readonly string[]
}

async function call({ host = 'one.gateway.test', path = '/', method = 'GET', fields = bearer }: Sent = {}) {
  const sent = request({ port, path, method, headers: ['Host', host, ...fields], agent: false }).end()
  const [res] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: res.statusCode, headers: res.headers, text: (await buffer(res)).toString() }
}

t.beforeEach(() => {
  for (const one of [origin, second, third]) one.seen.length = 0
})

t.test('every spelling of the host is the virtual host, whatever the port', async t => {
  for (const host of [
    'one.gateway.test',
    'ONE.Gateway.TEST',
    'one.gateway.test.',
    `one.gateway.test:${port}`,
    'one.gateway.test.:1',
  ]) {
    t.match(await call({ host, path: '/v1/models?a=%2F' }), { status: 200, text: 'upstream /v1/models?a=%2F' }, host)
  }
  for (const host of ['[::1]', `[::1]:${port}`, '[0:0::1]']) t.match(await call({ host }), { status: 200 }, host)
  t.equal(second.seen.length, 3)
  t.equal(origin.seen[0]?.headers.host, new URL(origin.url).host)
})

t.test('another host is the gateway itself', async t => {
  for (const host of ['x.one.gateway.test', 'one.gateway.test..', 'one.gateway', 'gateway.test']) {
    t.equal((await call({ host, path: '/v1/models' })).status, 404, host)
  }
  t.equal((await call({ host: 'gateway.test', path: '/health' })).status, 200)
})

t.test('a virtual host serves nothing of the gateway: each path is the upstream’s', async t => {
  const own = [
    '/health',
    '/metrics',
    '/tokens',
    '/agents',
    '/hitl',
    '/console',
    '/audit',
    '/open-api',
    '/console/',
    `/proxy/${third.url}/`,
  ]
  for (const path of own) t.match(await call({ path }), { status: 200, text: `upstream ${path}` }, path)
  for (const path of own) t.match(await call({ path, fields: [] }), { status: 401 }, path)
  t.equal(origin.seen.length, own.length)
  t.strictSame(third.seen, [])
})

t.test('the path is checked as behind /proxy/', async t => {
  for (const path of ['/a/../b', '/%2e%2e/b', '/a\\b', '/a#b', '/x/..%2f..%2fadmin']) {
    t.match(await call({ path }), { status: 400, headers: { 'gateway-error': 'invalid_target' } }, path)
  }
  t.strictSame(origin.seen, [])
})

t.test('absolute-form names the virtual host; HTTP/1.0 without Host names none', async t => {
  const auth = `Authorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
  const raw = async (line: string, host: string) => {
    const client = await openRaw(t, port)
    client.write(`${line}\r\n${host}${auth}`)
    return (await client.closed()).split('\r\n', 1)[0]
  }
  const host = 'Host: one.gateway.test\r\n'
  t.equal(await raw('GET http://one.gateway.test/a HTTP/1.1', host), 'HTTP/1.1 200 OK')
  t.equal(await raw('GET http://two.gateway.test/a HTTP/1.1', host), 'HTTP/1.1 400 Invalid request')
  t.equal(await raw('GET /a HTTP/1.0', host), 'HTTP/1.1 200 OK')
  t.equal(await raw('GET /a HTTP/1.0', ''), 'HTTP/1.1 404 Not found')
  t.equal(await raw('OPTIONS * HTTP/1.1', host), 'HTTP/1.1 400 Invalid request')
  t.strictSame(
    origin.seen.map(({ target }) => target),
    ['/a', '/a'],
  )
})

t.test('policies, and the log, see the upstream', async t => {
  const rule = {
    name: 'no-admin',
    effect: 'Deny',
    conditions: [{ field: 'input.path', operator: 'eq', value: '/admin' }],
  }
  await gateway.policy({ name: 'no-admin', default: 'Allow', rules: [rule] })
  const agent = await gateway.agent({ policyName: 'no-admin' })
  const fields = ['Authorization', `Bearer ${agent.token}`]
  t.match(await call({ path: '/admin', fields }), { status: 403, headers: { 'gateway-error': 'policy_denied' } })
  t.match(await call({ path: '/%61dmin', fields }), { status: 403 })
  t.equal((await call({ path: '/', fields })).status, 200)
  const isTold = () => gateway.log.some(line => line['origin'] === origin.url && line['path'] === '/admin')
  t.ok(await eventually(isTold, Boolean))
})

const redirect = async (to: string) => (await call({ path: `/?to=${encodeURIComponent(to)}` })).headers

t.test('a redirect stays where the client finds it', async t => {
  const own = `http://one.gateway.test`
  const cases: readonly (readonly [string, string])[] = [
    ['/login?a=1', '/login?a=1'],
    [`${origin.url}/x`, '/x'],
    ['next', '/next'],
    [`${second.url}/x`, 'http://two.gateway.test/x'],
    [`${third.url}/x`, `http://gateway.test:7080/proxy/${third.url}/x`],
    [`${origin.url}//evil.test/x`, `${own}//evil.test/x`],
    ['//evil.test/x', 'http://gateway.test:7080/proxy/http://evil.test/x'],
    ['/.//evil.test/x', `${own}//evil.test/x`],
  ]
  for (const [given, expected] of cases) t.equal((await redirect(given)).location, expected, given)
  t.equal((await redirect(`${origin.url}/x`))['gateway-upstream-location'], `${origin.url}/x`)
  t.equal((await redirect('/x'))['gateway-upstream-location'], undefined, 'nothing was changed')
  t.equal((await redirect('mailto:a@b')).location, undefined)
})

t.test('a link to another virtual host has the port that the client used', async t => {
  const { headers } = await call({ host: 'one.gateway.test:8443', path: `/?to=${second.url}/x` })
  t.equal(headers.location, 'http://two.gateway.test:8443/x')
})

t.test('a cookie keeps its path and loses its domain', async t => {
  const cookie = encodeURIComponent('a=1; Path=/v1; Domain=example.com; HttpOnly')
  t.strictSame((await call({ path: `/?cookie=${cookie}` })).headers['set-cookie'], ['a=1; Path=/v1; HttpOnly'])
})

t.test('a challenge of the upstream is not answered with the gateway’s token', async t => {
  const challenge = `Bearer realm="${third.url}/token", resource_metadata="${origin.url}/.well-known/x"`
  const path = `/?challenge=${encodeURIComponent(challenge)}`
  const renamed = await call({ path })
  t.equal(renamed.status, 401)
  t.equal(renamed.headers['www-authenticate'], undefined)
  t.equal(renamed.headers['gateway-upstream-www-authenticate'], challenge)
  const free = await call({ path, fields: ['Gateway-Authorization', `Bearer ${token}`] })
  const metadata = 'resource_metadata="http://one.gateway.test/.well-known/x"'
  t.equal(free.headers['www-authenticate'], `Bearer realm="${third.url}/token", ${metadata}`)
})

t.test('a held request points to the public URL', async t => {
  await gateway.policy({ name: 'held', default: 'Hitl' })
  const agent = await gateway.agent({ policyName: 'held' })
  const held = await call({ path: '/x', fields: ['Authorization', `Bearer ${agent.token}`] })
  const statusUrl = `http://gateway.test:7080/hitl/status/${held.headers['gateway-hitl-id']}`
  t.match(held, { status: 202, headers: { location: statusUrl } })
  t.ok(held.text.includes(statusUrl))
})

const basic = (password: string) => `Basic ${Buffer.from(`user:${password}`).toString('base64')}`

t.test('the token is taken from the fields of SDKs and tools, and is not sent on', async t => {
  const places = [
    ['Authorization', `Bearer ${token}`],
    ['Authorization', basic(token)],
    ['X-Api-Key', token],
    ['api-key', token],
    ['x-goog-api-key', token],
    ['PRIVATE-TOKEN', token],
    ['Gateway-Authorization', `Bearer ${token}`],
  ]
  for (const fields of places) {
    t.equal((await call({ fields })).status, 200, `${fields[0]}`)
    const [seen] = origin.seen.splice(0)
    t.equal(seen?.headers[fields[0]?.toLowerCase() ?? ''], undefined)
    t.notMatch(JSON.stringify(seen), token.slice(-20))
  }
})

t.test('beside the gateway’s own field, the others are the client’s for the upstream', async t => {
  const fields = ['Gateway-Authorization', `Bearer ${token}`, 'Authorization', 'Bearer upstream', 'X-Api-Key', 'sk-1']
  t.equal((await call({ fields })).status, 200)
  t.match(origin.seen[0]?.headers, { authorization: 'Bearer upstream', 'x-api-key': 'sk-1' })
})

t.test('a secret of the upstream is not taken for a token, whatever the order', async t => {
  for (const fields of [
    ['X-Api-Key', 'sk-of-the-upstream', ...bearer],
    [...bearer, 'X-Api-Key', 'sk-of-the-upstream'],
  ]) {
    t.equal((await call({ fields })).status, 200)
    t.match(origin.seen.splice(0)[0]?.headers, { 'x-api-key': 'sk-of-the-upstream', authorization: undefined })
  }
  for (const fields of [
    ['X-Api-Key', 'sk-of-the-upstream'],
    ['Authorization', basic('of-the-upstream')],
  ]) {
    const { status, headers } = await call({ fields })
    t.equal(status, 401)
    t.match(headers['www-authenticate'], /Send one token, as Authorization: Bearer/)
  }
  t.strictSame(origin.seen, [])
})

t.test('a token in two fields, or two values of one field, is refused', async t => {
  t.match(await call({ fields: [...bearer, 'Authorization', 'Bearer other'] }), { status: 401 })
  t.match(await call({ fields: [...bearer, 'X-Api-Key', token] }), { headers: { 'gateway-error': 'token_misplaced' } })
  t.match(await call({ fields: [...bearer, 'X_Api_Key', token] }), { headers: { 'gateway-error': 'token_misplaced' } })
  t.strictSame(origin.seen, [])
})

t.test('a 401 asks for Basic first, since tools send a password only when asked', async t => {
  for (const fields of [[], ['Authorization', basic('wrong')], ['Authorization', 'Bearer a.b.c']]) {
    const { status, headers } = await call({ fields })
    t.equal(status, 401)
    t.match(headers['www-authenticate'], /^Basic realm="agent-gateway", charset="UTF-8", Bearer /)
  }
  t.strictSame(origin.seen, [])
})

t.test('rules do not see the token', async t => {
  const condition = { field: 'input.headers.x-api-key', operator: 'contains', value: '.' }
  await gateway.policy({
    name: 'sees',
    default: 'Allow',
    rules: [{ name: 'sees', effect: 'Deny', conditions: [condition] }],
  })
  const agent = await gateway.agent({ policyName: 'sees' })
  t.equal((await call({ fields: ['X-Api-Key', agent.token] })).status, 200)
  t.equal((await call({ fields: ['Authorization', `Bearer ${agent.token}`, 'X-Api-Key', 'a.b'] })).status, 403)
})

t.test('rules do not see it either where the gateway has no field of its own', async t => {
  const conditions = [{ field: 'input.headers.x-api-key', operator: 'contains', value: 'ey' }]
  const own = await startGateway(t, {
    config: {
      Security: { AgentAuth: { UseCustomHeader: false } },
      Hosts: [{ Host: 'one.gateway.test', Upstream: origin.url }],
      Policies: [{ name: 'no-keys', default: 'Allow', rules: [{ name: 'key', effect: 'Deny', conditions }] }],
      Policy: { AssignOnRegistration: 'no-keys' },
    },
  })
  const bot = await own.agent({ policyName: 'no-keys' })
  const headers = ['Host', 'one.gateway.test', 'X-Api-Key', bot.token]
  const [res] = (await once(request({ port: own.port, headers, agent: false }).end(), 'response')) as [IncomingMessage]
  t.equal(res.resume().statusCode, 200)
})

t.test('metadata of an OAuth resource names the virtual host, by the port that the client used', async t => {
  const path = '/.well-known/oauth-protected-resource/mcp'
  const { text, headers } = await call({ host: 'mcp.gateway.test:8080', path })
  const expected = { resource: 'http://mcp.gateway.test:8080/mcp', authorization_servers: ['https://id.test'] }
  t.strictSame(JSON.parse(text), expected)
  t.equal(headers['content-length'], String(text.length))
  t.equal(headers.etag, undefined)
  const odd = await call({ host: 'mcp.gateway.test', path: '/.well-known/oauth-protected-resource' })
  t.match(odd.text, new RegExp(`${resource.url}/mcp.*not JSON$`), 'what cannot be read is left as it is')
  // A challenge may name any path; MCP clients send their fields with this request.
  const fields = ['MCP-Protocol-Version', '2025-11-25']
  for (const asked of ['/custom/meta', '/custom/meta?/mcp']) {
    const found = await call({ host: 'mcp.gateway.test:8080', path: asked, fields: [...bearer, ...fields] })
    t.strictSame(JSON.parse(found.text), expected, asked)
  }
  const plain = await call({ host: 'mcp.gateway.test:8080', path: '/custom/meta' })
  t.match(JSON.parse(plain.text), { resource: `${resource.url}/mcp` }, 'without a field of MCP')
  const throughProxy = await gateway.proxy(token, `${resource.url}${path}`)
  t.match(await throughProxy.json(), { resource: `${resource.url}/mcp` })
})

t.test('a long value that nearly is one in Base64 takes no longer than another: anybody may send it', async t => {
  const timeOf = (value: string) =>
    cpuTimeOf(async () => {
      for (let n = 0; n < 20; n++) t.equal((await call({ fields: ['Authorization', value] })).status, 401)
    })
  const usual = await timeOf('a '.repeat(7_500))
  t.ok((await timeOf(`${'a'.repeat(15_000)}!`)) < 10 * usual, `${usual} ms of CPU time`)
})
