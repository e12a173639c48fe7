/**
 * An upstream for measurements: `node bench/origin.ts [KEY CERTIFICATE]`, in TLS when it has those files. It answers
 * `GET /` with 250 bytes, `GET /bytes/N` with N bytes as fast as they are taken, `GET /events/COUNT/BYTES/MS` with so
 * many events of that size, that many milliseconds apart, and any request with a body with the number of bytes it had.
 * Where `/v1/chat/completions` is behind MS, the events are those of a model, and the last one has the usage.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { bodyOf } from './lib/bytes.ts'
import { answerBytes } from './lib/upstream.ts'

const answer = 'x'.repeat(answerBytes)

const listener: RequestListener = (req, res) => {
  const [, kind, ...numbers] = (req.url ?? '').split('/')
  if (kind === 'bytes') sendBytes(res, Number(numbers[0]))
  else if (kind === 'events') sendEvents(res, numbers.slice(0, 3).map(Number), numbers.at(-1) === 'completions')
  else if (req.method === 'GET') res.writeHead(200, ['Content-Length', String(answerBytes)]).end(answer)
  else countBytes(req, res)
}
const [key, certificate] = process.argv.slice(2).map(file => readFileSync(file))
const options = { keepAliveTimeout: 600_000, requestTimeout: 0 }
const server =
  key === undefined
    ? createServer(options, listener)
    : createTlsServer({ ...options, key, cert: certificate }, listener)
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))

function sendBytes(res: ServerResponse, size: number): void {
  res.writeHead(200, ['Content-Length', String(size)])
  bodyOf(size).pipe(res)
}

const ofLetters = (letters: string): string => `data: ${letters}\n\n`

/** As OpenAI sends them when the request asks for the usage. */
function ofModel(content: string, usage: object | null = null): string {
  const choices = [{ index: 0, delta: { content } }]
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'gpt', choices, usage }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

function sendEvents(res: ServerResponse, [count = 0, bytes = 0, ms = 0]: readonly number[], isModel: boolean): void {
  const textOf = isModel ? ofModel : ofLetters
  const event = textOf('x'.repeat(bytes - textOf('').length))
  const last = isModel ? ofModel('', { prompt_tokens: 120, completion_tokens: count }) : event
  res.writeHead(200, ['Content-Type', 'text/event-stream'])
  let left = count
  const timer = setInterval(() => {
    left -= 1
    res.write(left > 0 ? event : last)
    if (left > 0 && !res.destroyed) return
    clearInterval(timer)
    res.end()
  }, ms)
}

function countBytes(req: IncomingMessage, res: ServerResponse): void {
  let size = 0
  // A sender that breaks off is no fault of ours.
  req.on('error', () => {})
  req.on('data', data => {
    size += data.length
  })
  req.on('end', () => {
    const text = String(size)
    res.writeHead(200, ['Content-Length', String(text.length)]).end(text)
  })
}
