/**
 * Offers so many requests a second, whatever the answers take: `node paced.ts LOAD`, LOAD being JSON with perSecond.
 * autocannon sends its share of each second at once, and wrk knows no pace. A latency counts from the millisecond
 * in which the request was due, so that waiting for a free connection is part of it.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import type { Load } from './load.ts'

const { request, connections, seconds, perSecond } = JSON.parse(process.argv[2] ?? '') as Load & { perSecond: number }
const { hostname, port, pathname, search, host } = new URL(request.url)
const { method, headers, body = '' } = request
const head = [
  `${method} ${pathname}${search} HTTP/1.1`,
  `Host: ${host}`,
  ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
]
const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)

const latency = createHistogram()
const idle: Exchanges[] = []
/** When requests were due that no connection was free for. */
const waiting: number[] = []
let answered = 0
let failed = 0

/** One connection: a request, its answer, the next request. */
class Exchanges {
  readonly #socket: Socket
  #due = 0
  #text = ''

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#read(text))
    socket.on('close', () => {
      failed += 1
    })
    socket.on('error', () => {})
  }

  send(due: number): void {
    this.#due = due
    this.#socket.write(bytes)
  }

  #read(text: string): void {
    this.#text += text
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#text)?.[1]
    if (length === undefined) throw new Error(`an answer without Content-Length:\n${this.#text}`)
    if (this.#text.length < end + 4 + Number(length)) return
    if (this.#text.startsWith('HTTP/1.1 2')) answered += 1
    else failed += 1
    latency.record(Math.max(1, Math.round((performance.now() - this.#due) * 1e3)))
    this.#text = ''
    const due = waiting.shift()
    if (due === undefined) idle.push(this)
    else this.send(due)
  }
}

/** Connections take turns, so that none stands idle for so long that it is closed. */
function offer(due: number): void {
  const exchanges = idle.shift()
  if (exchanges === undefined) waiting.push(due)
  else exchanges.send(due)
}

await Promise.all(
  Array.from({ length: connections }, async () => {
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    idle.push(new Exchanges(socket))
  }),
)
const start = performance.now()
let offered = 0
const timer = setInterval(() => {
  const elapsed = performance.now() - start
  if (elapsed > seconds * 1e3) finish()
  for (const due = Math.floor((elapsed * perSecond) / 1e3); offered < due; offered++) {
    offer(start + (offered * 1e3) / perSecond)
  }
}, 1)

function finish(): void {
  clearInterval(timer)
  const microseconds = Math.round((performance.now() - start) * 1e3)
  const [p50, p99] = [latency.percentile(50), latency.percentile(99)]
  process.stdout.write(`${JSON.stringify({ requests: answered, microseconds, failed, p50, p99 })}\n`, () =>
    process.exit(),
  )
}
