/**
 * A hostile agent, in a process of its own with its upstream: `node neighbour-attacks.ts JSON` runs the attacks named
 * there until SIGUSR2, then prints what it offered. `node bench/neighbours.ts` starts it.
 */
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'

/** What the process is given. */
export interface Orders {
  /** The gateway. */
  readonly url: string
  /** Port of its forward proxy. */
  readonly forwardPort: number
  /** Token of the hostile agent. */
  readonly token: string
  readonly attacks: readonly string[]
}

interface Target extends Orders {
  /** An upstream that answers `/503` with that, `/endless` without end, and `/never` not at all. */
  readonly upstream: string
  readonly signal: AbortSignal
}

const megabyte = 2 ** 20
/** The victim has another one: connections are limited for each address. */
const hostileAddress = '127.0.0.2'
/** Requests that were begun, and connections with no request that is answered. */
let offered = 0

/** Repeats a call, so many at a time. */
async function flood({ signal }: Target, atOnce: number, call: (turn: number) => Promise<unknown>): Promise<void> {
  let turn = 0
  const worker = async () => {
    while (!signal.aborted) {
      offered++
      await call(turn++).catch(() => {})
      await new Promise(setImmediate)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function proxied({ url, token, signal }: Target, target: string, init: RequestInit = {}): Promise<void> {
  const headers = { 'Gateway-Authorization': `Bearer ${token}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${url}/proxy/${target}`, { signal, headers, redirect: 'manual', ...init })
  await answer.arrayBuffer()
}

/** Connections that stay open until the signal, with these first bytes. Nothing reads what comes back. */
async function hold({ url, signal }: Target, count: number, firstBytes: string): Promise<void> {
  const { port, hostname } = new URL(url)
  const sockets: Socket[] = []
  for (; sockets.length < count && !signal.aborted; offered++) {
    const socket = connect({ port: Number(port), host: hostname, localAddress: hostileAddress })
    socket.on('error', () => {})
    if (firstBytes !== '') socket.write(firstBytes)
    sockets.push(socket)
  }
  await new Promise<void>(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
  for (const socket of sockets) socket.destroy()
}

/** A tunnel with a handshake in it, closed after that. Nothing is sent in it. */
async function handshake({ forwardPort, token, signal }: Target, host: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = connect({ port: forwardPort, host: '127.0.0.1', localAddress: hostileAddress, signal })
  socket.on('error', resolve).on('close', resolve)
  socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: Bearer ${token}\r\n\r\n`)
  socket.once('data', (answer: Buffer) => {
    if (!answer.toString('latin1').startsWith('HTTP/1.1 200 ')) socket.destroy()
    else {
      const secure = connectSecurely({ socket, servername: host, rejectUnauthorized: false })
      secure.on('error', resolve).on('secureConnect', () => secure.destroy())
    }
  })
  await promise
  socket.destroy()
}

const tunnels = async (target: Target, count: number, firstBytes: string): Promise<void> => {
  const { forwardPort, token } = target
  const head = `CONNECT a.invalid:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Bearer ${token}\r\n\r\n`
  await hold({ ...target, url: `http://127.0.0.1:${forwardPort}` }, count, head + firstBytes)
}

const get = ({ token, upstream }: Target, path: string): string =>
  `GET /proxy/${upstream}${path} HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`

const unfinished = ({ token, upstream }: Target, path: string): string =>
  `POST /proxy/${upstream}${path} HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n` +
  'Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"a":'

const post = (body: string) => (target: Target) =>
  flood(target, 4, () => proxied(target, `${target.upstream}/bytes`, { method: 'POST', body }))

export const neighbourAttacks: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  'dead names': target => flood(target, 32, turn => proxied(target, `http://dead-${turn}.invalid/`)),
  'bodies that never end': target => hold(target, 256, unfinished(target, '/never')),
  'requests never answered': target => flood(target, 128, () => proxied(target, `${target.upstream}/never`)),
  'answers that are never read': target => hold(target, 64, get(target, '/endless')),
  'requests held for review': target =>
    flood(target, 8, turn => proxied(target, `${target.upstream}/held`, { method: 'POST', body: `{"turn":${turn}}` })),
  '503 answers': target => flood(target, 4, () => proxied(target, `${target.upstream}/503`)),
  'detector texts of 1 MB': post(JSON.stringify({ text: 'AA11 BB22 CC33 '.repeat(megabyte / 15) })),
  'JSON of too many objects': post(`[${'{},'.repeat(megabyte / 3 - 2)}{}]`),
  // As many as are read.
  'JSON of 99,000 objects': post(`[${'{},'.repeat(99_000)}{}]`),
  'refused management calls': target =>
    flood(target, 4, async () => {
      const headers = { Authorization: `Bearer ${target.token}` }
      const answer = await fetch(`${target.url}/agents`, { signal: target.signal, headers })
      await answer.arrayBuffer()
    }),
  'handshakes for ever new hosts': target =>
    flood(target, 32, turn => handshake(target, `host-${turn}.${process.pid}.invalid`)),
  'handshakes for one host': target => flood(target, 32, () => handshake(target, 'one.invalid')),
  'tunnels that never send': target => tunnels(target, 500, ''),
  'tunnels that begin a handshake': target => tunnels(target, 500, '\x16\x03\x01\x02'),
  'connections that never send': target => hold(target, 500, ''),
  'pipelined calls that are never read': target =>
    hold(target, 4, 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'.repeat(50_000)),
}

function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(16_384, 'x')
}

async function attack(orders: Orders): Promise<void> {
  const server = createServer((req, res) => {
    req.resume()
    if (req.url === '/503') res.writeHead(503).end()
    else if (req.url === '/endless') Readable.from(endless()).pipe(res)
    else if (req.url !== '/never') res.end()
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const over = new AbortController()
  const target = { ...orders, upstream, signal: over.signal }
  process.once('SIGUSR2', () => {
    over.abort()
    console.log(`offered ${offered}`)
  })
  for (const name of orders.attacks) void neighbourAttacks[name]?.(target)
  console.log('attacking')
}

if (import.meta.main) await attack(JSON.parse(process.argv[2] ?? '') as Orders)
