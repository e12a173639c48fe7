/** Heads of answers that come again and again are written from memory: a client must not see a difference. */
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
const gateway = await startGateway(t, { config: { Security: { AgentAuth: { FallbackToAuthorization: true } } } })
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

t.test('answers without a body keep their form', async t => {
  fields = plain
  const head = get('/').replace('GET', 'HEAD')
  for (const answer of await ask([head, head, head], ''))
    t.match(answer, /^HTTP\/1\.1 200 Fine\r\n.*Content-Length: 2\r\n/s)
})
