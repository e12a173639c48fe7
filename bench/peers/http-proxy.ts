/** http-proxy over kept connections; it checks nothing. `node http-proxy.ts UPSTREAM_URL [CERTIFICATE]`. */
import { readFileSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { AddressInfo } from 'node:net'
import httpProxy from 'http-proxy'

const [target, certificate] = process.argv.slice(2)
const kept = { keepAlive: true, maxSockets: 256, maxFreeSockets: 256 }
const proxy = httpProxy.createProxyServer({
  target,
  agent: certificate === undefined ? new Agent(kept) : new TlsAgent({ ...kept, ca: readFileSync(certificate) }),
})
proxy.on('error', (_error, _req, res) => res.destroy())
const prefix = `/proxy/${target}`

/** What the upstream is asked for. */
const pathOf = (url = ''): string => (url.startsWith(prefix) ? url.slice(prefix.length) : url)

const server = createServer({ keepAliveTimeout: 600_000 }, (req, res) => {
  req.url = pathOf(req.url)
  proxy.web(req, res)
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${(server.address() as AddressInfo).port}`))
// Ends as a program should, so that a profile is written.
process.once('SIGTERM', () => process.exit())
