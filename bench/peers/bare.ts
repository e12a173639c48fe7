/**
 * What node:http and undici cost together, in the cheapest way that they allow and checking nothing.
 * One undici Client a connection, idle ones on a stack, raw header arrays both ways, requests sent in the check
 * phase, one write of one string for a small answer. `node bare.ts UPSTREAM_URL`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, type Dispatcher } from 'undici'

const origin = process.argv[2] as string
const prefix = '/proxy/http://'.length
const idle: Client[] = []
const outbox: Forward[] = []

class Forward implements Dispatcher.DispatchHandler {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #client: Client

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req
    this.#res = res
    this.#client = idle.pop() ?? new Client(origin, { keepAliveTimeout: 600_000, allowH2: false })
  }

  dispatch(): void {
    const { method, url = '', rawHeaders } = this.#req
    this.#client.dispatch(
      {
        method: method as Dispatcher.HttpMethod,
        path: url.slice(url.indexOf('/', prefix)),
        headers: withoutConnection(rawHeaders),
        body: method === 'GET' ? null : this.#req,
      },
      this,
    )
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, reason = ''): void {
    const raw = controller.rawHeaders as unknown as readonly Buffer[]
    this.#res.sendDate = false
    this.#res.writeHead(status, reason, withoutConnection(raw.map(value => value.toString('latin1'))))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // One string, as node joins it with the head: a write of one piece costs less than one of two.
    if (chunk.length === answerLength(controller)) this.#res.end(chunk.toString('latin1'), 'latin1')
    else if (!this.#res.write(chunk)) {
      controller.pause()
      this.#res.once('drain', () => controller.resume())
    }
  }

  onResponseEnd(): void {
    idle.push(this.#client)
    this.#res.end()
  }

  onResponseError(): void {
    this.#res.destroy()
  }
}

function answerLength({ rawHeaders }: Dispatcher.DispatchController): number {
  const raw = rawHeaders as unknown as readonly Buffer[]
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.toString('latin1').toLowerCase() === 'content-length') return Number(raw[i + 1]!.toString('latin1'))
  }
  return -1
}

function withoutConnection(raw: readonly string[]): string[] {
  const out: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    if (name !== 'connection' && name !== 'keep-alive' && name !== 'transfer-encoding' && name !== 'host') {
      out.push(raw[i]!, raw[i + 1]!)
    }
  }
  return out
}

const server = createServer({ keepAliveTimeout: 600_000, noDelay: true, optimizeEmptyRequests: true }, (req, res) => {
  if (outbox.push(new Forward(req, res)) === 1) {
    setImmediate(() => {
      for (const forward of outbox.splice(0)) forward.dispatch()
    })
  }
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))
// Ends as a program should, so that a profile is written.
process.once('SIGTERM', () => process.exit())
