/** Calls of the gateway's own API that arrive at another thread: the main thread answers them. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { MessageChannel } from 'node:worker_threads'
import { refuse } from '../base/refusals.ts'
import type { Incoming } from '../http/accept.ts'
import { upstreamFields } from '../http/headers.ts'
import { request as httpRequest } from '../http/node-http.ts'
import { sendRefusal } from '../http/respond.ts'
import type { Link } from '../runtime/link.ts'
import { PortStream, type SocketEnds } from './port-stream.ts'
import type { ControlCalls } from './protocol.ts'

type ReportError = (what: string, error: unknown) => void

/** Fields of an answer that concern the connection between the threads. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/** Passes calls on over connections of their own. The addresses of the client's connection go with each. */
export function createManagementRelay(
  main: Link<ControlCalls>,
  report: ReportError,
): (incoming: Incoming) => Promise<void> {
  const connect = (ends: SocketEnds): Duplex => {
    const { port1, port2 } = new MessageChannel()
    const stream = new PortStream(port1)
    main.call('connect', [port2, ends]).catch((error: Error) => stream.destroy(error))
    return stream
  }

  return async incoming => {
    const { req, res, requestId } = incoming
    const { remoteAddress, localAddress, localPort } = req.socket
    const ends = { remoteAddress, localAddress, localPort }
    const passed = httpRequest({
      createConnection: () => connect(ends),
      method: req.method,
      path: req.url,
      headers: headersOf(incoming),
      setHost: false,
    })
    passed.on('response', answer => passBack(answer, incoming))
    passed.on('error', error => {
      if (isAnswered(res)) return
      report('a call could not be passed to the main thread', error)
      sendRefusal(res, refuse('internal'), requestId)
    })
    res.once('close', () => passed.destroy())
    const send = () => (req.readableEnded ? passed.end() : req.pipe(passed))
    // The answer may not need the body, which may never come.
    passed.flushHeaders()
    if (!incoming.expectsContinue) send()
    else {
      // The main thread decides whether the client is asked for the body.
      passed.once('continue', () => {
        if (isAnswered(res)) return
        res.writeContinue()
        send()
      })
    }
  }
}

function headersOf({ req, fields, expectsContinue }: Incoming): string[] {
  const headers = ['Host', fields.host, ...upstreamFields(req.rawHeaders, fields, []), 'Connection', 'close']
  if (fields.contentLength < 0) headers.push('Transfer-Encoding', 'chunked')
  else if (fields.contentLength > 0) headers.push('Content-Length', String(fields.contentLength))
  else if (req.method !== 'GET' && req.method !== 'HEAD') headers.push('Content-Length', '0')
  if (expectsContinue) headers.push('Expect', '100-continue')
  return headers
}

/** Refuses a call whose body does not arrive. */
function isAnswered(res: ServerResponse): boolean {
  return res.headersSent || res.destroyed
}

function passBack(answer: IncomingMessage, { req, res }: Incoming): void {
  if (isAnswered(res)) {
    answer.destroy()
    return
  }
  const headers: string[] = []
  for (let i = 0; i < answer.rawHeaders.length; i += 2) {
    const name = answer.rawHeaders[i]!
    if (!ofConnection.has(name.toLowerCase())) headers.push(name, answer.rawHeaders[i + 1]!)
  }
  // The unread rest of an upload would be taken for the next request.
  if (!req.complete) headers.push('Connection', 'close')
  res.sendDate = false
  res.writeHead(answer.statusCode ?? 500, answer.statusMessage, headers)
  res.flushHeaders()
  answer.on('error', () => res.destroy())
  answer.pipe(res)
}
