/** Two readers of one answer: MCP's lists of tools, and the metadata of a virtual host. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const tools = [{ name: 'read' }, { name: 'drop' }]
const fields = { 'Content-Type': 'application/json', ETag: '"1"' }
const origin = await startOrigin(t, (req, res) => {
  const document = { resource: `${origin.url}/mcp`, result: { tools } }
  // A byte a chunk: readers get what the one before them has passed on, however it came.
  res.writeHead(200, fields)
  for (const byte of JSON.stringify(req.url === '/plain' ? { tools: [] } : document)) res.write(byte)
  res.end()
})
const gateway = await startGateway(t, { config: { Hosts: [{ Host: 'mcp.gateway.test', Upstream: origin.url }] } })
const policyName = await gateway.policy({
  name: 'no-drop',
  default: 'Allow',
  rules: [
    {
      name: 'drop',
      effect: 'Deny',
      conditions: [{ field: 'mcp.tool', operator: 'eq', value: 'drop' }],
    },
  ],
})
const { token } = await gateway.agent({ policyName })

async function get(path: string) {
  const headers = {
    Host: 'mcp.gateway.test',
    Authorization: `Bearer ${token}`,
    Accept: 'application/json, text/event-stream',
    'Mcp-Protocol-Version': '2025-06-18',
  }
  const [res] = (await once(request({ port: gateway.port, path, headers, agent: false }).end(), 'response')) as [
    IncomingMessage,
  ]
  return { status: res.statusCode, headers: res.headers, text: (await buffer(res)).toString() }
}

t.test('one reader reads what the other made of an answer', async t => {
  const answer = await get('/custom/meta')
  t.equal(answer.status, 200)
  t.strictSame(JSON.parse(answer.text), {
    resource: 'http://mcp.gateway.test/mcp',
    result: { tools: [{ name: 'read' }] },
  })
  t.match(answer.headers, { etag: undefined, 'content-length': String(answer.text.length) })
})

t.test('an answer that no reader changes keeps its fields', async t => {
  const answer = await get('/plain')
  t.strictSame([answer.text, answer.headers.etag], ['{"tools":[]}', '"1"'])
})
