/** Threat T16 of SECURITY.md. */
import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { interceptors, Pool, request, fetch as undiciFetch } from 'undici'
import { startRawServer } from '../fixtures/raw.ts'
import { startReview } from '../fixtures/review.ts'
import { withSystem } from '../fixtures/system.ts'

/** The answer of the upstream to the next requests. */
let answer: { status: number; fields: readonly string[] } = { status: 200, fields: [] }

const review = await startReview(t, {
  answer: (req, res) => void req.resume().on('end', () => res.writeHead(answer.status, [...answer.fields]).end('body')),
})
const { hold, approve, call, reviewer, bot } = review

/** The gateway's address again, with every request counted. */
let requests = 0
const counted = await startRawServer(t, socket => {
  const gateway = connect(review.port, '127.0.0.1')
  socket.on('data', chunk => {
    requests += chunk.toString('latin1').match(/ HTTP\/1\.1\r\n/g)?.length ?? 0
  })
  gateway.on('error', () => socket.destroy())
  socket.pipe(gateway).pipe(socket)
})

t.beforeEach(() => {
  requests = 0
})

const headers = { Authorization: `Bearer ${reviewer.token}` }
const curl = async (url: string, ...options: string[]) => {
  const args = ['-s', '-L', '--max-redirs', '3', '--post301', '--post302', '--post303', '--anyauth', ...options]
  const auth = ['-u', 'me:secret', '-H', `Authorization: ${headers.Authorization}`]
  const write = ['-o', '/dev/null', '-w', '%{http_code}']
  const { stdout } = await promisify(execFile)('curl', [...args, ...auth, ...write, '-X', 'POST', url])
  return Number(stdout)
}

/** Clients that follow redirects, each as its users call it; the status that they tell. */
const clients: Readonly<Record<string, (url: string) => Promise<number>>> = {
  'the fetch of Node': async url => (await fetch(url, { method: 'POST', headers })).status,
  'the fetch of undici': async url => (await undiciFetch(url, { method: 'POST', headers })).status,
  'undici with its redirect interceptor': async url => {
    const { origin, pathname } = new URL(url)
    const pool = new Pool(origin)
    t.teardown(() => pool.close())
    const dispatcher = pool.compose(interceptors.redirect({ maxRedirections: 3 }))
    const { statusCode, body } = await request(origin + pathname, { method: 'POST', headers, dispatcher })
    await body.dump()
    return statusCode
  },
  ...(withSystem && { 'curl -L': (url: string) => curl(url) }),
}

/** What the client gets for a status of the upstream. */
const statuses = { 201: 201, 300: 300, 301: 301, 302: 302, 303: 303, 307: 307, 308: 308, 401: 401, 503: 503 }
const replaced = { 407: 502, 408: 502, 421: 502, 425: 502 }

/** Where every redirect leads: approving it is what the agent is after. */
const other = await hold('/other')

for (const [name, post] of Object.entries(clients)) {
  t.test(`${name} calls once, whatever the upstream says`, async t => {
    for (const [status, shown] of Object.entries({ ...statuses, ...replaced })) {
      const target = `/hitl/${other}/approve`
      const challenge = ['WWW-Authenticate', 'Basic realm="x"', 'Proxy-Authenticate', 'Basic realm="x"']
      const again = ['Location', target, 'Content-Location', target, 'Refresh', `0; url=${target}`, 'Retry-After', '0']
      answer = { status: Number(status), fields: [...again, ...challenge] }
      const id = await hold('/first')
      requests = 0
      t.equal(await post(`${counted.url}/hitl/${id}/approve`), shown, status)
      t.equal(requests, 1, `${status}: one call`)
    }
    t.match(await (await call('GET', `/hitl/${other}`)).json(), { status: 'Pending' })
  })
}

const steering = [
  ...['Location', 'Content-Location', 'Refresh', 'Retry-After', 'Link', 'Alt-Svc', 'Set-Cookie', 'Set-Cookie2'],
  ...['Clear-Site-Data', 'WWW-Authenticate', 'Proxy-Authenticate', 'Authentication-Info', 'Strict-Transport-Security'],
  ...['Content-Security-Policy', 'Content-Security-Policy-Report-Only', 'Access-Control-Allow-Origin'],
  ...['Access-Control-Allow-Credentials', 'Service-Worker-Allowed', 'Report-To', 'Reporting-Endpoints', 'NEL'],
  ...['SourceMap', 'X-SourceMap', 'X-Accel-Redirect', 'X-Sendfile', 'Public-Key-Pins', 'Expect-CT', 'Expires'],
  ...['Permissions-Policy', 'Cross-Origin-Opener-Policy', 'Content-Disposition', 'Cache-Control', 'X-Frame-Options'],
  ...['CDN-Cache-Control', 'Sec-Session-Registration', 'HX-Redirect', 'X-Content-Type-Options', 'Set_Cookie'],
]
const plain = ['Content-Type', 'ETag', 'X-One', 'Content-Language', 'RateLimit', 'Date']

t.test('fields that steer a client are renamed, for the reviewer and for the agent; others are not', async t => {
  const fields = [...steering, ...plain].flatMap(name => [name, name === 'Date' ? new Date(0).toUTCString() : 'text/x'])
  answer = { status: 302, fields: [...fields, 'Set-Cookie', 'b', 'Gateway-Upstream-Location', 'forged'] }
  const id = await hold('/')
  const approved = await approve(id)
  // At its end it is recorded.
  const texts = [await approved.text()]
  const told = await call('GET', `/hitl/${id}/response`, { token: bot.token })
  texts.push(await told.text())
  for (const { status, headers } of [approved, told]) {
    t.equal(status, 302)
    for (const name of steering) t.ok(headers.get(`Gateway-Upstream-${name}`)?.startsWith('text/x'), name)
    const own = {
      'Cache-Control': 'no-store',
      'Content-Security-Policy': 'sandbox',
      'X-Content-Type-Options': 'nosniff',
    }
    for (const name of steering) t.equal(headers.get(name), own[name as keyof typeof own] ?? null, name)
    for (const name of plain) t.ok(headers.has(name), name)
    t.equal(headers.get('gateway-upstream-set-cookie'), 'text/x, b')
    t.equal(headers.get('gateway-upstream-location'), 'text/x', 'the upstream cannot write these itself')
    t.equal(headers.get('gateway-hitl-id'), id)
  }
  t.strictSame(texts, ['body', 'body'])
})

t.test('a status of the connection is 502, with the upstream’s beside it', async t => {
  answer = { status: 421, fields: [] }
  const id = await hold('/')
  const approved = await approve(id)
  t.match({ status: approved.status, text: await approved.text() }, { status: 502, text: 'body' })
  t.equal(approved.headers.get('gateway-upstream-status'), '421')
  t.match(await (await call('GET', `/hitl/${id}`)).json(), { pending: { replay: 'completed', responseStatus: 421 } })
})
