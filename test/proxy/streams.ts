/** Threat T33 of SECURITY.md. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()
const auth = { 'Gateway-Authorization': `Bearer ${token}` }

t.test('server-sent events arrive one by one, while the upstream still holds the rest', async t => {
  let upstream: ServerResponse | undefined
  const origin = await startOrigin(t, (_req, res) => {
    upstream = res
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.flushHeaders()
  })
  const answer = await gateway.proxy(token, `${origin.url}/events`)
  t.equal(answer.headers.get('content-type'), 'text/event-stream', 'the head comes before any event')
  const reader = answer.body!.getReader()
  for (const event of ['data: one\n\n', 'data: two\n\n', 'data: three\n\n']) {
    upstream!.write(event)
    t.equal(Buffer.from((await reader.read()).value!).toString(), event)
  }
  upstream!.end()
  t.ok((await reader.read()).done)
})

t.test('a body without announced length reaches the upstream while it is still being sent', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.once('data', chunk => res.end(`first: ${chunk}`))
  })
  const call = request(`${gateway.url}/proxy/${origin.url}/up`, { method: 'POST', headers: auth })
  call.write('one')
  const [answer] = await once(call, 'response')
  t.equal(await text(answer), 'first: one')
  t.equal(origin.seen[0]?.done, false, 'the upload is not over')
  t.equal(origin.seen[0]?.headers['transfer-encoding'], 'chunked')
  call.destroy()
})

t.test('an announced length stays announced, and every byte value arrives', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume().on('end', () => res.end())
  })
  const body = Buffer.from(Array.from({ length: 65_536 }, (_, i) => i & 255))
  await (await gateway.proxy(token, `${origin.url}/up`, { method: 'PUT', body })).text()
  const [seen] = origin.seen
  t.equal(seen?.headers['content-length'], '65536')
  t.equal(seen?.headers['transfer-encoding'], undefined)
  t.equal(seen?.sha256, createHash('sha256').update(body).digest('hex'))
})

t.test('32 MiB each way arrive unchanged', async t => {
  const chunk = randomBytes(1_048_576)
  const expected = createHash('sha256')
  for (let i = 0; i < 32; i++) expected.update(chunk)
  const digest = expected.digest('hex')
  const many = () => Readable.from(Array.from({ length: 32 }, () => chunk))
  const origin = await startOrigin(t, (req, res) => {
    req.on('end', () => many().pipe(res))
  })
  const call = request(`${gateway.url}/proxy/${origin.url}/big`, { method: 'POST', headers: auth })
  many().pipe(call)
  const [answer] = await once(call, 'response')
  const received = createHash('sha256')
  for await (const part of answer) received.update(part)
  t.equal(origin.seen[0]?.sha256, digest)
  t.equal(received.digest('hex'), digest)
})

t.test('a GET with a body is framed and forwarded, byte for byte', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume().on('end', () => res.end('ok'))
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(
    `GET /proxy/${origin.url}/x HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\nContent-Length: 4\r\n\r\nabcd`,
  )
  await raw.until(/ok$/)
  t.equal(origin.seen[0]?.body.toString(), 'abcd')
  t.equal(origin.seen[0]?.headers['content-length'], '4')
})

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  let all = ''
  for await (const part of stream) all += part
  return all
}
