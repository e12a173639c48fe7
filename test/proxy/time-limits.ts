/** Threat T32 of SECURITY.md: limits of time are for what stands still, and none is for a stream that moves. */
import { request } from 'node:http'
import type { Writable } from 'node:stream'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { certFile, startHttp2 } from '../fixtures/origin-http2.ts'

const seconds = 2
const gateway = await startGateway(t, {
  lookup: async () => ['127.0.0.1'],
  config: {
    System: { Server: { HeadersTimeoutSeconds: seconds, IdleTimeoutSeconds: seconds, KeepAliveSeconds: seconds } },
    Proxy: {
      ...{ HeadersTimeoutSeconds: seconds, IdleTimeoutSeconds: seconds, ConnectTimeoutSeconds: seconds },
      ...{ CaFile: certFile, Http2Hosts: ['idp.test'] },
    },
  },
})
const { token } = await gateway.agent()

const bytes = 'a byte at a time'
/** All bytes together take longer than any two limits. */
const pause = 350

/** Writes one byte, and the next a while later, and ends. */
function trickle(to: Writable): void {
  let sent = 0
  const timer = setInterval(() => {
    to.write(bytes.charAt(sent++))
    if (sent < bytes.length) return
    clearInterval(timer)
    to.end()
  }, pause)
  to.on('close', () => clearInterval(timer))
}

/** Sends a body that trickles, or none, and gives the whole answer. */
async function exchange(url: string, method: 'GET' | 'POST'): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const sent = request(`${gateway.url}/proxy/${url}`, {
    method,
    headers: { 'Gateway-Authorization': `Bearer ${token}` },
  })
  sent.on('error', reject)
  sent.on('response', res => {
    let text = ''
    res.on('data', chunk => {
      text += chunk
    })
    res.on('end', () => resolve(`${res.statusCode} ${text}`)).on('error', reject)
  })
  if (method === 'POST') trickle(sent)
  else sent.end()
  return promise
}

/** `/up` answers once the body is here, `/down` with a body that trickles, `/both` with each byte as it comes. */
function answer(path: string, req: NodeJS.ReadableStream, res: Writable): void {
  if (path === '/down') trickle(res)
  else if (path === '/both') req.on('data', chunk => res.write(chunk)).on('end', () => res.end())
  else {
    let text = ''
    req.on('data', chunk => {
      text += chunk
    })
    req.on('end', () => res.end(text))
  }
}

const http1 = await startOrigin(t, (req, res) => answer(req.url ?? '', req, res))
const http2 = await startHttp2(t, (stream, _, headers) => {
  const path = headers[':path'] ?? ''
  const respond = () => stream.respond({ ':status': 200 })
  if (path === '/up') stream.once('end', respond)
  else respond()
  answer(path, stream, stream)
})

// They take their time: all of them together.
const answers = Object.fromEntries(
  [http1, http2].flatMap(({ url }) => [
    [`${url}/up`, exchange(`${url}/up`, 'POST')],
    [`${url}/down`, exchange(`${url}/down`, 'GET')],
    [`${url}/both`, exchange(`${url}/both`, 'POST')],
  ]),
)

for (const [url, whole] of Object.entries(answers)) {
  const [, scheme = '', way = ''] = /^(https?):.*\/(\w+)$/.exec(url) ?? []
  t.test(`a stream that moves lives on: ${way} over ${scheme === 'https' ? 'HTTP/2' : 'HTTP/1.1'}`, async t => {
    t.equal(await whole, `200 ${bytes}`)
  })
}

t.test('an answer that stands still is cut off, over both', async t => {
  const still1 = await startOrigin(t, (_req, res) => void res.write('begun'))
  const still2 = await startHttp2(t, stream => {
    stream.respond({ ':status': 200 })
    stream.write('begun')
  })
  await Promise.all([still1, still2].map(({ url }) => t.rejects(exchange(`${url}/`, 'GET'))))
})
