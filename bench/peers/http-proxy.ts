/** http-proxy over kept connections; it checks nothing. `node http-proxy.ts UPSTREAM_PORT`. */
import { Agent, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import httpProxy from 'http-proxy'

const proxy = httpProxy.createProxyServer({
  target: `http://127.0.0.1:${process.argv[2]}`,
  agent: new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 }),
})
proxy.on('error', (_error, _req, res) => res.destroy())
const server = createServer({ keepAliveTimeout: 600_000 }, (req, res) => proxy.web(req, res))
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))
// Ends as a program should, so that a profile is written.
process.once('SIGTERM', () => process.exit())
