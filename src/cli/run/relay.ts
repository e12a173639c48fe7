/**
 * The proxy that the program of `run` is given: it adds the key of the agent to each request, and passes everything else as
 * it is to the gateway. So the program does not have the key, and a gateway on a unix socket or with TLS looks like a plain one.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { fieldValue, parseHead, type RawHead, rewriteHead } from './request-head.ts'

export interface RelayParts {
  /** Begins a connection to the forward proxy of the gateway, and calls back once bytes can be sent. */
  readonly connect: (onReady: () => void) => Socket
  /** How people name it. */
  readonly gatewayName: string
  /** Value of `Proxy-Authorization` for the gateway, as it is now. */
  readonly authorization: () => string
  /** What the program must send as its password; undefined where nothing else can connect. */
  readonly password: string | undefined
}

/** Serves one connection of the program. */
export type Relay = (program: Socket) => void

/** Bytes of a head, as much as the gateway takes. */
const maxHead = 65_536
/** Time for a head to arrive, milliseconds. */
const headMs = 60_000
/** The user name in the proxy URL of the program. */
export const relayUser = 'run'

const notAuthenticated = reply(
  '407 Proxy Authentication Required',
  'The proxy of agent-gateway run is for its program alone: use the URL in HTTPS_PROXY.',
  ['Proxy-Authenticate: Basic realm="agent-gateway run"'],
)
const tooLong = reply('431 Request Header Fields Too Large', 'The head of the request is too long.')

export function createRelay(parts: RelayParts): Relay {
  const accepts = createCheck(parts.password)
  return program => {
    program.on('error', () => program.destroy())
    program.setNoDelay(true)
    readHead(program, (head, rest) => {
      if (head === undefined) return program.end(tooLong)
      if (!accepts(head)) return program.end(notAuthenticated)
      // The rest is a body, or the first bytes in a tunnel.
      return pass(program, parts, [Buffer.from(rewriteHead(head, parts.authorization()), 'latin1'), rest])
    })
  }
}

function createCheck(password: string | undefined): (head: RawHead) => boolean {
  if (password === undefined) return () => true
  const digest = (text: string) => hash('sha256', text, 'buffer')
  const wanted = digest(`Basic ${Buffer.from(`${relayUser}:${password}`).toString('base64')}`)
  return head => timingSafeEqual(digest(fieldValue(head, 'proxy-authorization') ?? ''), wanted)
}

/** Calls back with the head, undefined when it is too long, and what came behind it. A client that is too slow is cut off. */
function readHead(program: Socket, done: (head: RawHead | undefined, rest: Buffer) => void): void {
  let read: Buffer = Buffer.alloc(0)
  const leave = (): unknown => program.destroy()
  const late = setTimeout(leave, headMs)
  // A program may open connections that it does not use: its run must not wait for them.
  program.once('close', () => clearTimeout(late)).once('end', leave)
  const onData = (chunk: Buffer) => {
    const from = Math.max(0, read.length - 3)
    read = Buffer.concat([read, chunk])
    const end = read.indexOf('\r\n\r\n', from)
    if (end < 0 && read.length <= maxHead) return
    clearTimeout(late)
    program.off('data', onData).off('end', leave).pause()
    done(end < 0 ? undefined : parseHead(read.toString('latin1', 0, end)), read.subarray(end + 4))
  }
  program.on('data', onData)
}

function pass(program: Socket, { connect, gatewayName }: RelayParts, first: readonly Buffer[]): void {
  let isConnected = false
  const gateway = connect(() => {
    isConnected = true
    for (const bytes of first) gateway.write(bytes)
    gateway.pipe(program)
    program.pipe(gateway)
  })
  gateway.setNoDelay(true)
  gateway.on('error', (error: NodeJS.ErrnoException) => {
    if (isConnected) program.destroy()
    else program.end(noGateway(gatewayName, error))
  })
  gateway.once('close', () => isConnected && program.destroySoon())
  program.once('close', () => gateway.destroySoon())
}

const noGateway = (name: string, error: NodeJS.ErrnoException): string =>
  reply('502 No Gateway Answers', `No gateway answers at ${name} (${error.code ?? error.message}).`)

/** The last answer on its connection. */
function reply(status: string, text: string, fields: readonly string[] = []): string {
  const head = [`HTTP/1.1 ${status}`, ...fields, 'Content-Type: text/plain', `Content-Length: ${text.length}`]
  return [...head, 'Connection: close', '', text].join('\r\n')
}
