/** Threats T13, T22 of SECURITY.md. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { behaviour } from '../fixtures/engine.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()
const auth = `Gateway-Authorization: Bearer ${token}\r\n`

function ask(port: number, path: string, lines: string): string {
  return `GET /proxy/http://127.0.0.1:${port}${path} HTTP/1.1\r\nHost: gateway\r\n${auth}${lines}\r\n`
}

behaviour(t, 'order, spelling and repetition of end-to-end fields are kept, hop-by-hop fields are not', async t => {
  const origin = await startOrigin(t)
  const raw = await openRaw(t, gateway.port)
  const lines = [
    'X-B: 1',
    'x-a: 2',
    'X-B: 3',
    'Connection: keep-alive, X-Secret',
    'X-Secret: s',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'TE: trailers',
    'Trailer: X-T',
    'Cookie: c=1',
    'Proxy-Authorization: Basic eA==',
    'X-Empty:',
    'X-Latin: caf\u00e9',
  ]
  raw.write(Buffer.from(ask(origin.port, '/', `${lines.join('\r\n')}\r\n`), 'latin1'))
  await raw.until(/upstream$/)
  t.strictSame(origin.seen[0]?.rawHeaders, [
    'Host',
    `127.0.0.1:${origin.port}`,
    'X-B',
    '1',
    'x-a',
    '2',
    'X-B',
    '3',
    'Cookie',
    'c=1',
    'X-Empty',
    '',
    'X-Latin',
    'caf\u00e9',
    'Via',
    '1.1 agent-gateway',
  ])
})

behaviour(t, 'what the upstream names in Connection does not reach the client', async t => {
  const server = await startRawServer(t, socket => {
    socket.once('data', () =>
      socket.write(
        'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok',
      ),
    )
  })
  const answer = await gateway.proxy(token, server.url)
  t.equal(await answer.text(), 'ok')
  t.equal(answer.headers.get('x-hop'), null)
  t.equal(answer.headers.get('x-end'), '2')
  t.equal(answer.headers.get('date'), null, 'nothing is added')
})

behaviour(t, 'an upstream cannot pass its answer off as one of the gateway', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(403, { 'Gateway-Error': 'policy_denied', 'Gateway-Hitl-Id': 'x', 'Gateway-Mode': 'y' }).end()
  })
  const answer = await gateway.proxy(token, origin.url)
  t.equal(answer.status, 403)
  t.equal(answer.headers.get('gateway-error'), null)
  t.equal(answer.headers.get('gateway-hitl-id'), null)
  t.equal(answer.headers.get('gateway-mode'), 'y', 'any other field is its own')
})

behaviour(t, 'HEAD gets the head alone, and the connection stays in step', async t => {
  const origin = await startOrigin(t, (req, res) => {
    res.writeHead(200, { 'Content-Length': '11', 'X-Method': req.method })
    res.end(req.method === 'HEAD' ? undefined : 'hello world')
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(ask(origin.port, '/', '').replace('GET', 'HEAD'))
  raw.write(ask(origin.port, '/', 'Connection: close\r\n'))
  const [, head, get] = (await raw.closed()).split('HTTP/1.1 ')
  t.match(head, /^200 OK\r\n[\s\S]*Content-Length: 11\r\n[\s\S]*\r\n\r\n$/)
  t.match(get, /^200 OK\r\n[\s\S]*\r\n\r\nhello world$/)
})

for (const status of [204, 304]) {
  behaviour(t, `${status} has no body, also when the upstream sends one`, async t => {
    const server = await startRawServer(t, socket => {
      socket.once('data', () => socket.end(`HTTP/1.1 ${status} X\r\nETag: "a"\r\nContent-Length: 4\r\n\r\nevil`))
    })
    const origin = await startOrigin(t)
    const raw = await openRaw(t, gateway.port)
    raw.write(ask(server.port, '/', ''))
    const head = await raw.until(/\r\n\r\n/)
    t.equal(/content-length/i.test(head), status === 304, 'a length is said where it means something')
    raw.write(ask(origin.port, '/', 'Connection: close\r\n'))
    const text = await raw.closed()
    t.match(text, new RegExp(`^HTTP/1.1 ${status} X\\r\\n`))
    t.notMatch(text, /evil/)
    t.match(text, /hello from upstream$/)
  })
}

behaviour(t, 'trailers of a chunked answer are passed on', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(200, { Trailer: 'X-Sum' })
    res.write('body')
    res.addTrailers({ 'X-Sum': '42' })
    res.end()
  })
  const call = request(`${gateway.url}/proxy/${origin.url}/`, {
    headers: { 'Gateway-Authorization': `Bearer ${token}` },
  })
  call.end()
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  await once(answer.resume(), 'end')
  t.strictSame(answer.trailers, { 'x-sum': '42' })
})

behaviour(t, 'early hints reach the client before the answer', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeEarlyHints({ link: '</style.css>; rel=preload' })
    res.end('done')
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(ask(origin.port, '/', 'Connection: close\r\n'))
  const text = await raw.closed()
  t.match(text, /^HTTP\/1.1 103 Early Hints\r\nLink: <\/proxy\/http:\/\/127\.0\.0\.1:\d+\/style.css>; rel=preload\r\n/i)
  t.match(text, /HTTP\/1.1 200 OK[\s\S]*done/)
})

behaviour(t, '100 Continue is sent for a request that is let in, and not for one that is refused', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume().on('end', () => res.end('got it'))
  })
  const head = `POST /proxy/${origin.url}/ HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\nContent-Length: 4\r\n`
  const good = await openRaw(t, gateway.port)
  good.write(`${head}${auth}\r\n`)
  await good.until(/^HTTP\/1.1 100 Continue\r\n\r\n$/)
  good.write('body')
  await good.until(/got it$/)
  t.equal(origin.seen[0]?.headers.expect, undefined)
  t.equal(origin.seen[0]?.body.toString(), 'body')

  const { token: denied } = await gateway.agent({ policyName: null })
  const bad = await openRaw(t, gateway.port)
  bad.write(`${head}Gateway-Authorization: Bearer ${denied}\r\n\r\n`)
  const text = await bad.closed()
  t.match(text, /^HTTP\/1.1 403/)
  t.equal(origin.seen.length, 1, 'the upstream saw nothing of the second')
})

behaviour(t, 'a request that has passed this gateway already is a loop', async t => {
  const origin = await startOrigin(t)
  const answer = await gateway.proxy(token, origin.url, { headers: { Via: '1.0 other, 1.1 agent-gateway' } })
  t.equal(answer.status, 508)
  t.equal(answer.headers.get('gateway-error'), 'loop_detected')
  const management = await fetchDocumented(`${gateway.url}/health`, { headers: { Via: '1.1 agent-gateway' } })
  t.equal(management.status, 508)
  t.equal((await gateway.proxy(token, origin.url, { headers: { Via: '1.1 my-agent-gateway-2' } })).status, 200)
  t.equal(origin.seen.length, 1)
})

behaviour(t, 'the fallback to Authorization takes the token, and it does not reach the upstream', async t => {
  const fallback = await startGateway(t, { config: { Security: { AgentAuth: { FallbackToAuthorization: true } } } })
  const origin = await startOrigin(t)
  const agent = await fallback.agent()
  const answer = await fallback.proxy(undefined, origin.url, { headers: { Authorization: `Bearer ${agent.token}` } })
  t.equal(answer.status, 200)
  t.equal(origin.seen[0]?.headers.authorization, undefined)
  await fallback.proxy(agent.token, origin.url, { headers: { Authorization: 'Bearer of-the-upstream' } })
  t.equal(origin.seen[1]?.headers.authorization, 'Bearer of-the-upstream', 'a field that carried no token stays')
})
