/** The SDK of the Model Context Protocol on both sides of the gateway. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Test } from 'tap'
import t from 'tap'
import { z } from 'zod'
import { startGateway } from '../fixtures/gateway.ts'
import { runExample } from './fixtures/documented.ts'

/** A server with a session and two tools: `add`, which tells of its progress, and `drop`. */
async function startMcpServer(t: Test) {
  const called: string[] = []
  const mcp = new McpServer({ name: 'sums', version: '1.0.0' })
  mcp.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() } },
    async ({ a, b }, { _meta, sendNotification }) => {
      called.push('add')
      const { progressToken } = _meta ?? {}
      if (progressToken !== undefined) {
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } })
      }
      return { content: [{ type: 'text', text: String(a + b) }] }
    },
  )
  mcp.registerTool('drop', {}, async () => {
    called.push('drop')
    return { content: [] }
  })
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID })
  await mcp.connect(transport as Parameters<typeof mcp.connect>[0])
  const server = createServer((req, res) => void transport.handleRequest(req, res)).listen(0, '127.0.0.1')
  t.teardown(async () => {
    await mcp.close()
    server.closeAllConnections()
    server.close()
  })
  await new Promise(resolve => server.once('listening', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, called }
}

const gateway = await startGateway(t)
const server = await startMcpServer(t)
const isCall = { field: 'mcp.method', operator: 'eq', value: 'tools/call' }
const policyName = await gateway.policy({
  name: 'no-drop',
  default: 'Allow',
  rules: [
    {
      name: 'no-drop',
      effect: 'Deny',
      reason: 'Nothing is dropped',
      conditions: [isCall, { field: 'mcp.tool', operator: 'eq', value: 'drop' }],
    },
  ],
})
const { token } = await gateway.agent({ policyName })

async function connect(t: Test): Promise<Client> {
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${server.url}`), {
    requestInit: { headers: { 'Gateway-Authorization': `Bearer ${token}` } },
  })
  await client.connect(transport as Parameters<typeof client.connect>[0])
  t.teardown(() => client.close())
  return client
}

const client = await connect(t)

t.test('tools are listed and called, and progress is told on the way', async t => {
  t.strictSame(
    (await client.listTools()).tools.map(({ name }) => name),
    ['add', 'drop'],
  )
  const progress: number[] = []
  const call = { name: 'add', arguments: { a: 2, b: 3 } }
  const { content } = await client.callTool(call, undefined, { onprogress: ({ progress: at }) => progress.push(at) })
  t.match(content, [{ type: 'text', text: '5' }])
  t.strictSame(progress, [1])
})

t.test('a tool that the policy denies is not called, and its caller hears why', async t => {
  const error = await client.callTool({ name: 'drop', arguments: {} }).catch((error: Error) => error)
  t.match(error, { message: /Nothing is dropped/ })
  t.notOk(server.called.includes('drop'))
})

t.test('the example of docs/agents.md works as pasted', async t => {
  const other = await startMcpServer(t)
  const upstream = other.url.replace('/mcp', '')
  const imports = '@modelcontextprotocol/sdk'
  t.equal(await runExample({ imports, gateway: gateway.url, upstream, token }), 'add drop\n')
})
