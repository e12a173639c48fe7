/** What the SDK of the Model Context Protocol builds from the host of a server alone works on a virtual host. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { discoverOAuthProtectedResourceMetadata, selectResourceURL } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import t from 'tap'
import { holdsKey, startKeyGateway } from './fixtures/key-gateway.ts'

const seen: unknown[] = []
const transports = new Map<string, SSEServerTransport>()
const server = createServer(async (req, res) => {
  const { pathname, searchParams, origin } = new URL(req.url ?? '/', `http://${req.headers.host}`)
  seen.push([req.url, req.rawHeaders])
  if (pathname.startsWith('/.well-known/oauth-protected-resource')) {
    const metadata = { resource: `${origin}/sse`, authorization_servers: [origin] }
    res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(metadata))
  } else if (pathname === '/sse') {
    // The endpoint is a path of the host, which is why it is lost behind /proxy/.
    const transport = new SSEServerTransport('/messages', res)
    transports.set(transport.sessionId, transport)
    const mcp = new McpServer({ name: 'old', version: '1.0.0' })
    mcp.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hello' }] }))
    await mcp.connect(transport)
  } else await transports.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(req, res)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => {
  server.closeAllConnections()
  server.close()
})
const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const { key, host } = await startKeyGateway(t, upstream)
const headers = { Authorization: `Bearer ${key}` }
const url = new URL(`http://${host}/sse`)

t.test('the transport of before, whose server sends the path to post to', async t => {
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const transport = new SSEClientTransport(url, { requestInit: { headers } })
  await client.connect(transport as Parameters<typeof client.connect>[0])
  t.strictSame(
    (await client.listTools()).tools.map(({ name }) => name),
    ['hello'],
  )
  t.match(await client.callTool({ name: 'hello' }), { content: [{ type: 'text', text: 'hello' }] })
  await client.close()
  t.notOk(holdsKey(seen, key))
})

t.test('the metadata of OAuth is found, and names the server that the client has called', async t => {
  const withKey: typeof fetch = (input, init) => fetch(input, { ...init, headers: { ...init?.headers, ...headers } })
  const metadata = await discoverOAuthProtectedResourceMetadata(url, undefined, withKey)
  t.equal(metadata.resource, url.href)
  const provider = {} as Parameters<typeof selectResourceURL>[1]
  t.equal((await selectResourceURL(url, provider, metadata))?.href, url.href)
})
