/** Heads of answers that come again and again are written from memory: a client must not see a difference. Threat T21. */
import { createServer } from 'node:net'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const plain = ['Content-Type', 'text/plain', 'X-Upstream', 'one', 'Content-Length', '2']
let fields = plain
const origin = await startOrigin(t, (_req, res) => {
  res.sendDate = false
  res.writeHead(200, 'Fine', fields).end('ok')
})
const config = {
  Upstreams: [
    { Host: `127.0.0.1:${origin.port}`, Policy: 'with-key', Header: 'X-Api-Key', ValueFromEnv: 'KEY', AllowHttp: true },
  ],
  Security: { AgentAuth: { FallbackToAuthorization: true } },
  Metering: { Hosts: [`127.0.0.1:${origin.port}`] },
  Budgets: [
    { Name: 'calls', Unit: 'Calls', Limit: 1e6 },
    { Name: 'tokens', Unit: 'Tokens', Limit: 1e9, Owners: ['metered'] },
  ],
}
const gateway = await startGateway(t, { config, env: { KEY: 'a-key-to-hide' } })
const { token } = await gateway.agent({ policyName: 'allow-all' })
const own = `Gateway-Authorization: Bearer ${token}`

/** Sends requests one after the other on a connection of their own, and returns the heads of the answers. */
async function ask(requests: readonly string[], body = 'ok'): Promise<string[]> {
  const raw = await openRaw(t, gateway.port)
  const end = `\r\n\r\n${body}`
  for (const [at, request] of requests.entries()) {
    raw.write(`${request}\r\nHost: gateway\r\n\r\n`)
    await raw.until(new RegExp(`^(?:.*?${end}){${at + 1}}$`, 's'))
  }
  return raw
    .text()
    .split(end)
    .slice(0, -1)
    .map(head => `${head}\r\n`)
}

const get = (path: string, field = own, version = '1.1') =>
  `GET /proxy/${origin.url}${path} HTTP/${version}\r\n${field}`
const idOf = (head: string) => /\r\nGateway-Request-Id: (\S+)\r\n/.exec(head)?.[1]
const withoutId = (head: string) => head.replace(/(?<=\r\nGateway-Request-Id: )\S+/, 'id')

t.test('equal heads differ in the request id alone', async t => {
  const heads = await ask(Array.from({ length: 5 }, () => get('/')))
  t.equal(new Set(heads.map(idOf)).size, 5)
  const [first = '', ...others] = heads.map(withoutId)
  for (const other of others) t.equal(other, first)
  const wanted = ['HTTP/1.1 200 Fine', 'Content-Type: text/plain', 'X-Upstream: one', 'Content-Length: 2']
  t.strictSame(first.split('\r\n').slice(0, 6), [...wanted, 'Gateway-Request-Id: id', 'Connection: keep-alive'])
})

t.test('a head that changes is passed on as it is', async t => {
  fields = ['X-Upstream', 'two', 'Content-Length', '2']
  const changed = (await ask([get('/'), get('/')])).map(withoutId)
  fields = plain
  const back = await ask([get('/'), get('/'), get('/')])
  for (const head of changed) t.match(head, /\r\nX-Upstream: two\r\nContent-Length: 2\r\n/)
  for (const head of back) t.match(head, /\r\nX-Upstream: one\r\n/)
})

t.test('a connection that is not kept is told so, and closed', async t => {
  for (const request of [get('/', `${own}\r\nConnection: close`), get('/', own, '1.0')]) {
    const raw = await openRaw(t, gateway.port)
    raw.write(`${request}\r\nHost: gateway\r\n\r\n`)
    t.match(await raw.closed(), /^HTTP\/1\.1 200 Fine\r\n.*\r\nConnection: close\r\n.*ok$/s)
  }
})

t.test('T62: fields that depend on the request are still written for each', async t => {
  const byAuthorization = await ask([get('/', `Authorization: Bearer ${token}`), get('/')])
  t.match(byAuthorization[0], /\r\nContent-Security-Policy: sandbox\r\n/)
  t.notMatch(byAuthorization[1], /Content-Security-Policy/)
  fields = ['Set-Cookie', 'a=1', 'Content-Length', '2']
  const cookies = await ask(['/one/x', '/one/x', '/one/x', '/two/x'].map(path => get(path)))
  t.strictSame(
    cookies.map(head => /; Path=\S*(\/\w+)\r\n/.exec(head)?.[1]),
    ['/one', '/one', '/one', '/two'],
  )
})

t.test('T77: what is left of a budget stands in the answers of its agent alone, as it is then', async t => {
  fields = plain
  const { token: metered } = await gateway.agent({ ownerId: 'metered', policyName: 'allow-all' })
  const body = '{"model":"m","max_tokens":10}'
  const field = `Gateway-Authorization: Bearer ${metered}\r\nContent-Type: application/json`
  const post = `${get('/v1/chat/completions', field).replace('GET', 'POST')}\r\nContent-Length: ${body.length}`
  const raw = await openRaw(t, gateway.port)
  for (let count = 1; count <= 3; count++) {
    raw.write(`${post}\r\nHost: gateway\r\n\r\n${body}`)
    await raw.until(new RegExp(`^(?:.*?\r\n\r\nok){${count}}$`, 's'))
  }
  t.equal(new Set(raw.text().match(/RateLimit: "calls";r=\d+/g)).size, 3)
  for (const head of await ask([get('/'), get('/'), get('/')])) t.notMatch(head, /RateLimit/)
})

t.test(
  'T83: a value that was added is hidden in a head that others get as it is, and a challenge for it is renamed',
  async t => {
    await gateway.policy({ name: 'with-key', default: 'Allow' })
    const { token: keyed } = await gateway.agent({ policyName: 'with-key' })
    const ofOther = get('/')
    const withKey = get('/', `Gateway-Authorization: Bearer ${keyed}`)
    const turns = [ofOther, ofOther, ofOther, withKey, withKey, withKey, ofOther, withKey]
    fields = ['X-Echo', 'a-key-to-hide', 'Content-Length', '2']
    const echoes = (await ask(turns)).map(head => /\r\nX-Echo: (\S+)\r\n/.exec(head)?.[1])
    const [shown, hidden] = ['a-key-to-hide', '[redacted]']
    t.strictSame(echoes, [shown, shown, shown, hidden, hidden, hidden, shown, hidden])
    fields = ['WWW-Authenticate', 'Basic realm=x', 'Content-Length', '2']
    const challenges = (await ask(turns)).map(head => /\r\n(\S+): Basic realm=x\r\n/.exec(head)?.[1])
    const [own, renamed] = ['WWW-Authenticate', 'Gateway-Upstream-WWW-Authenticate']
    t.strictSame(challenges, [own, own, own, renamed, renamed, renamed, own, renamed])
    fields = plain
    const heads = (await ask(turns)).map(withoutId)
    t.equal(new Set(heads).size, 1, 'with nothing to hide they are the same')
    t.ok(origin.seen.some(({ headers }) => headers['x-api-key'] === 'a-key-to-hide'))
  },
)

t.test('answers without a body keep their form', async t => {
  fields = plain
  const head = get('/').replace('GET', 'HEAD')
  for (const answer of await ask([head, head, head], ''))
    t.match(answer, /^HTTP\/1\.1 200 Fine\r\n.*Content-Length: 2\r\n/s)
})

/** An upstream whose `Connection` takes away the length that frames its body, which looks like the end of one and an answer. */
async function startSplitter(): Promise<string> {
  const body = '0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nFORGED'
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: content-length\r\n\r\n${body}`
  const server = createServer(socket => socket.on('error', () => {}).on('data', () => socket.write(answer)))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

t.test('T21: an upstream that takes its length away cannot forge the next answer', async t => {
  const url = await startSplitter()
  const request = `GET /proxy/${url}/ HTTP/1.1\r\n${own}\r\nHost: gateway\r\n\r\n`
  for (const first of ['1.1', '1.0\r\nConnection: keep-alive']) {
    const other = await openRaw(t, gateway.port)
    for (let count = 0; count < 2; count++) other.write(request.replace('1.1', first))
    await other.until(/FORGED/)
    const raw = await openRaw(t, gateway.port)
    for (let count = 1; count <= 4; count++) {
      raw.write(request)
      await raw.until(new RegExp(`^(?:.*?FORGED\r\n0\r\n\r\n){${count}}$`, 's'))
    }
    // Each is one chunk of what the upstream sent, and its end.
    t.equal(raw.text().split(/\r\n\r\n[0-9a-f]+\r\n0\r\n\r\nHTTP/).length, 5)
  }
})
