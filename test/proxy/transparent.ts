/**
 * A request and its answer pass as they are: 1,000 random exchanges, direct and through the gateway, differ in what
 * docs/requests.md names and in nothing else.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { createRandom, pick } from '../fixtures/random-policy.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

type Random = () => number
type Field = readonly [string, string]

/** A message as text: each byte is the code point of the same number. */
interface Message {
  readonly startLine: string
  readonly fields: readonly Field[]
  readonly body: string
  readonly trailers: readonly Field[]
  /** How the end of the body is known. */
  readonly framing: 'length' | 'chunked' | 'close' | 'none'
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND', 'REPORT']
const names = ['X-One', 'x-two', 'X-THREE', 'Accept', 'User-Agent', 'Cookie', 'Authorization', 'Range', 'If-None-Match']
const answerNames = [
  'X-One',
  'x-two',
  'ETag',
  'Vary',
  'Server',
  'Date',
  'Cache-Control',
  'Content-Language',
  'Age',
  'Via',
]
const texts = ['1', 'a, b', 'W/"x;y"', 'caf\u00e9', '', 'x'.repeat(300), 'a  b\tc', 'bytes=0-1']
const statuses: readonly Field[] = [
  ...(['200 OK', '200 ', '201 Made it', '206 Partial', '299 Odd', '400 Bad Request', '404 Not Found'] as const),
  ...(['418 I\u00e9', '500 Oops', '501 Not there', '204 No Content', '205 Reset Content', '304 Not Modified'] as const),
].map(text => [text.slice(0, 3), text.slice(4)] as const)

const many = <T>(random: Random, most: number, make: () => T): T[] =>
  Array.from({ length: Math.floor(random() * (most + 1)) }, make)
const fieldsOf = (random: Random, from: readonly string[]): Field[] =>
  many(random, 6, () => [pick(random, from), pick(random, texts)] as const)
const bodyOf = (random: Random): string => pick(random, ['', 'x', '{"a":1}', 'caf\u00e9\r\n\r\n', 'y'.repeat(70_000)])

function randomRequest(random: Random): Message {
  const method = pick(random, methods)
  const path = pick(random, ['/', '/a?b=c&b=d', '/a%2Fb;c', '/x/', '/?', "/~a!$&'()*+,=:@"])
  const hasBody = random() < 0.5
  const framing = hasBody ? pick(random, ['length', 'chunked'] as const) : 'none'
  const fields = fieldsOf(random, names)
  if (random() < 0.2) fields.push(['Connection', 'close, X-One'])
  if (random() < 0.1) fields.push(['Max-Forwards', '5'])
  if (random() < 0.1) fields.push(['TE', 'trailers'])
  const trailers: Field[] = framing === 'chunked' && random() < 0.3 ? [['X-Sum', '1']] : []
  return { startLine: `${method} ${path} HTTP/1.1`, fields, body: hasBody ? bodyOf(random) : '', trailers, framing }
}

function randomAnswer(random: Random, method: string): Message {
  const [status = '', reason = ''] = pick(random, statuses)
  const hasBody = !['204', '205', '304'].includes(status) && method !== 'HEAD'
  const framing = hasBody
    ? pick(random, ['length', 'chunked', 'close'] as const)
    : status === '205' && method !== 'HEAD'
      ? 'length'
      : pick(random, ['length', 'none'] as const)
  const fields = fieldsOf(random, answerNames)
  if (random() < 0.2) fields.push(['Connection', 'X-One'])
  if (random() < 0.2) fields.push(['Keep-Alive', 'timeout=7'])
  const trailers: Field[] = framing === 'chunked' && random() < 0.3 ? [['X-Sum', '1']] : []
  const body = hasBody ? bodyOf(random) : ''
  return { startLine: `HTTP/1.1 ${status} ${reason}`, fields, body, trailers, framing }
}

const lines = (fields: readonly Field[]): string => fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')

/** The message as it is sent. `length` of an answer without a body is that of the body it has not got. */
function written({ startLine, fields, body, trailers, framing }: Message, more: readonly Field[] = []): string {
  const all = [...more, ...fields]
  if (framing === 'length') all.push(['Content-Length', String(body.length)])
  if (framing === 'chunked') all.push(['Transfer-Encoding', 'chunked'])
  const half = body.length >> 1
  const pieces = [body.slice(0, half), body.slice(half)].filter(piece => piece !== '')
  const chunks = pieces.map(piece => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
  const framed = framing === 'chunked' ? `${chunks}0\r\n${lines(trailers)}\r\n` : body
  return `${startLine}\r\n${lines(all)}\r\n${framed}`
}

/** The first message of a text, if it is whole. `isOver`: nothing more comes. */
function read(text: string, { method = '', isOver = false }): { message: Message; end: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [startLine = '', ...rest] = text.slice(0, headEnd).split('\r\n')
  const fields = rest.map(fieldOf)
  const at = headEnd + 4
  const value = (name: string) => fields.find(([found]) => found.toLowerCase() === name)?.[1]
  const message = { startLine, fields, trailers: [] }
  const isAnswer = startLine.startsWith('HTTP/')
  const isBodiless = isAnswer && (method === 'HEAD' || /^HTTP\/1\.\d (?:1|204|304)/.test(startLine))
  if (isBodiless) return { message: { ...message, body: '', framing: 'none' }, end: at }
  if (value('transfer-encoding') !== undefined) return readChunked(text, at, message)
  const length = value('content-length')
  if (length !== undefined) {
    const end = at + Number(length)
    return text.length < end
      ? undefined
      : { message: { ...message, body: text.slice(at, end), framing: 'length' }, end }
  }
  if (!isAnswer) return { message: { ...message, body: '', framing: 'none' }, end: at }
  return isOver ? { message: { ...message, body: text.slice(at), framing: 'close' }, end: text.length } : undefined
}

function fieldOf(line: string): Field {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

function readChunked(text: string, from: number, message: Omit<Message, 'body' | 'framing'>) {
  let body = ''
  for (let at = from; ; ) {
    const lineEnd = text.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(text.slice(at, lineEnd), 16)
    if (size === 0) {
      const end = text.indexOf('\r\n\r\n', lineEnd)
      if (end < 0) return undefined
      const trailers = text
        .slice(lineEnd + 2, end)
        .split('\r\n')
        .filter(Boolean)
        .map(fieldOf)
      return { message: { ...message, body, trailers, framing: 'chunked' as const }, end: end + 4 }
    }
    if (text.length < lineEnd + 2 + size + 2) return undefined
    body += text.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}

/** An upstream that answers with what the test gives it, and keeps what it got. */
let answer: Message
let got = undefined as Message | undefined
const upstream = await startRawServer(t, socket => {
  let received = ''
  socket.on('error', () => {})
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
    const found = read(received, {})
    if (found === undefined) return
    received = received.slice(found.end)
    got = found.message
    socket.write(written(answer), 'latin1')
    if (answer.framing === 'close') socket.end()
  })
})
const rate = { RequestsPerMinute: 1_000_000, Burst: 1_000_000 }
const gateway = await startGateway(t, { config: { System: { RateLimit: rate } } })
const { token } = await gateway.agent()
const host = `127.0.0.1:${upstream.port}`

/** What the upstream got, and what the client got. */
async function exchange(port: number, text: string, method: string) {
  got = undefined
  const client = await openRaw(t, port)
  client.write(Buffer.from(text, 'latin1'))
  for (;;) {
    const isOver = client.socket.readableEnded || client.socket.destroyed
    const found = read(client.text(), { method, isOver })
    if (found !== undefined || isOver) {
      client.socket.destroy()
      if (found === undefined || got === undefined) throw new Error(`no answer: ${client.text().slice(0, 200)}`)
      return { got, answered: found.message }
    }
    await client.more()
  }
}

const without = (fields: readonly Field[], dropped: readonly string[]) =>
  fields.filter(([name]) => !dropped.includes(name.toLowerCase()))
const valueIn = (fields: readonly Field[], name: string) => fields.find(([found]) => found.toLowerCase() === name)?.[1]

/** Fields that are named by `Connection`, and it itself. */
function hopByHop(fields: readonly Field[], always: readonly string[]): readonly string[] {
  const named = valueIn(fields, 'connection')?.split(',') ?? []
  return ['connection', ...always, ...named.map(name => name.trim().toLowerCase()).filter(name => name !== 'close')]
}

/** What the upstream gets of a request, in the words of the page. */
function asSent(request: Message): Message {
  const fields = without(request.fields, [...hopByHop(request.fields, ['te']), 'content-length', 'transfer-encoding'])
  const isOptions = request.startLine.startsWith('OPTIONS ')
  const counted = fields.map(([name, value]) => [name, isOptions && name === 'Max-Forwards' ? '4' : value] as const)
  return { ...request, trailers: [], fields: [...counted, ['Via', '1.1 agent-gateway']] }
}

/** What the client gets of an answer, in the words of the page. */
function asAnswered(given: Message): Message {
  const noLength = given.startLine.startsWith('HTTP/1.1 204') ? ['content-length'] : []
  const fields = without(given.fields, [...hopByHop(given.fields, ['keep-alive']), 'transfer-encoding', ...noLength])
  return { ...given, fields, framing: given.framing === 'close' ? 'chunked' : given.framing }
}

/** A request without a body may say so by a length of 0, or by nothing. */
function withoutFraming(request: Message): Message {
  const framing = request.framing === 'length' && request.body === '' ? 'none' : request.framing
  return { ...request, framing, fields: without(request.fields, ['content-length', 'transfer-encoding']) }
}

const ofGateway = ['gateway-request-id', 'connection', 'keep-alive', 'transfer-encoding']
const phrases = [
  'are set for the body that is sent',
  '`Connection` and the fields it names',
  'a length of 0 may come or go',
  '`Max-Forwards` of OPTIONS is counted down',
  'Trailers of a request are dropped',
  'Via: 1.1 agent-gateway',
  '`Gateway-Request-Id` is added',
  '`Connection`, `Keep-Alive` and `Transfer-Encoding` are those of the connection to the client',
  'ended by the close of its connection comes in chunks',
  '204 has no `Content-Length`',
]

t.test('1,000 random exchanges differ in what the page names alone', async t => {
  const page = readFileSync(new URL('../../docs/requests.md', import.meta.url), 'utf8').replace(/\s+/g, ' ')
  for (const phrase of phrases) t.ok(page.includes(phrase), phrase)
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const differences: unknown[] = []
  for (let count = 0; count < 1_000 && differences.length < 3; count++) {
    const request = randomRequest(random)
    const [method = '', path = ''] = request.startLine.split(' ')
    answer = randomAnswer(random, method)
    const direct = await exchange(upstream.port, written(request, [['Host', host]]), method)
    const own: Field[] = [
      ['Host', 'gateway'],
      ['Gateway-Authorization', `Bearer ${token}`],
    ]
    const startLine = `${method} /proxy/http://${host}${path} HTTP/1.1`
    const through = await exchange(gateway.port, written({ ...request, startLine }, own), method)
    const answered = { ...through.answered, fields: without(through.answered.fields, ofGateway) }
    const found = JSON.stringify([withoutFraming(through.got), answered])
    const wanted = JSON.stringify([withoutFraming(asSent(direct.got)), asAnswered(direct.answered)])
    if (found !== wanted) differences.push({ seed, count, found, wanted })
  }
  t.strictSame(differences, [])
})
