/** node:http answering from memory, as cheaply as it can: no proxy on it costs less. `node floor.ts UPSTREAM_URL`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerBytes } from '../lib/upstream.ts'

const answer = 'x'.repeat(answerBytes)
const head = ['Content-Type', 'text/plain', 'Content-Length', String(answerBytes)]

const server = createServer({ keepAliveTimeout: 600_000, noDelay: true, optimizeEmptyRequests: true }, (_req, res) => {
  res.sendDate = false
  res.writeHead(200, head).end(answer, 'latin1')
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))
// Ends as a program should, so that a profile is written.
process.once('SIGTERM', () => process.exit())
