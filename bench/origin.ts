/**
 * An upstream for measurements: `node bench/origin.ts`. It answers `GET /` with 250 bytes, `GET /bytes/N` with N
 * bytes as fast as they are taken, and any request with a body with the number of bytes it had.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bodyOf } from './lib/bytes.ts'
import { answerBytes } from './lib/upstream.ts'

const answer = 'x'.repeat(answerBytes)

const server = createServer({ keepAliveTimeout: 600_000, requestTimeout: 0 }, (req, res) => {
  const bytes = /^\/bytes\/(\d+)$/.exec(req.url ?? '')?.[1]
  if (bytes !== undefined) sendBytes(res, Number(bytes))
  else if (req.method === 'GET') res.writeHead(200, ['Content-Length', String(answerBytes)]).end(answer)
  else countBytes(req, res)
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))

function sendBytes(res: ServerResponse, size: number): void {
  res.writeHead(200, ['Content-Length', String(size)])
  bodyOf(size).pipe(res)
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
