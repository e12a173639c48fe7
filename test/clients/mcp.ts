/** The SDK of the Model Context Protocol on both sides of the gateway. */
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startMcpServer } from './fixtures/mcp-server.ts'

const Directory = fileURLToPath(new URL('../../policies', import.meta.url))
const gateway = await startGateway(t, { config: { Policy: { Directory } } })
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

async function connect(t: Test, url: string, token: string): Promise<Client> {
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${url}`), {
    requestInit: { headers: { 'Gateway-Authorization': `Bearer ${token}` } },
  })
  await client.connect(transport as Parameters<typeof client.connect>[0])
  t.teardown(() => client.close())
  return client
}

const client = await connect(t, server.url, token)

t.test('tools are listed and called, and progress is reported on the way', async t => {
  t.strictSame(
    (await client.listTools()).tools.map(({ name }) => name),
    ['add'],
    'what the policy denies is not listed',
  )
  const progress: number[] = []
  const call = { name: 'add', arguments: { a: 2, b: 3 } }
  const { content } = await client.callTool(call, undefined, { onprogress: ({ progress: at }) => progress.push(at) })
  t.match(content, [{ type: 'text', text: '5' }])
  t.strictSame(progress, [1])
})

t.test('a tool that the policy denies is not called, and its caller gets the reason', async t => {
  const error = await client.callTool({ name: 'drop', arguments: {} }).catch((error: Error) => error)
  t.match(error, { message: /Nothing is dropped/ })
  t.notOk(server.called.includes('drop'))
})

/** Another client, whose calls of tools wait for a person. */
async function connectHeld(t: Test) {
  const hold = { name: 'tools', effect: 'Hitl', conditions: [isCall] }
  const held = await gateway.policy({ name: `held-${randomUUID()}`, default: 'Allow', rules: [hold] })
  const other = await startMcpServer(t)
  const client = await connect(t, other.url, (await gateway.agent({ policyName: held })).token)
  const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[]
  const decide = async (verdict: 'approve' | 'deny', body: object = {}) => {
    const [item] = await eventually(list, ({ length }) => length === 1)
    return gateway.manage('POST', `/hitl/${item?.id}/${verdict}`, body, reviewer.token)
  }
  return { client, called: other.called, list, decide }
}

t.test('a tool that is held is called once a reviewer approves; its caller learns that it waits', async t => {
  const { client, called, decide } = await connectHeld(t)
  const told: (string | undefined)[] = []
  const onprogress = ({ message }: { message?: string | undefined }) => told.push(message)
  const call = client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }, undefined, { onprogress })
  t.match(
    await eventually(
      () => told,
      ({ length }) => length > 0,
    ),
    [/^Waiting for review/],
  )
  await decide('approve')
  t.match((await call).content, [{ type: 'text', text: '5' }])
  t.strictSame(called, ['add'])
  const plain = client.callTool({ name: 'add', arguments: { a: 3, b: 3 } })
  await decide('approve')
  t.match((await plain).content, [{ type: 'text', text: '6' }])
})

t.test('the caller of a tool that is denied gets the comment and the id of the review', async t => {
  const { client, called, decide } = await connectHeld(t)
  const call = client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }).catch((error: unknown) => error)
  await decide('deny', { comment: 'not on Fridays' })
  const data = { code: 'hitl_denied', comment: 'not on Fridays', hitlId: /./ }
  t.match(await call, { code: -32_010, message: /not on Fridays/, data })
  t.strictSame(called, [])
})

t.test('a call that its caller aborts is withdrawn', async t => {
  const { client, called, list } = await connectHeld(t)
  const abort = new AbortController()
  const call = client.callTool({ name: 'add', arguments: { a: 2, b: 3 } }, undefined, { signal: abort.signal })
  const failed = call.catch((error: unknown) => error)
  await eventually(list, ({ length }) => length === 1)
  abort.abort()
  t.ok((await failed) instanceof Error)
  t.strictSame(await eventually(list, ({ length }) => length === 0), [])
  t.strictSame(called, [])
})

t.test('the shipped policy lets a client open a session and list the tools; their calls wait', async t => {
  const other = await startMcpServer(t)
  const { token } = await gateway.agent({ policyName: 'default' })
  const client = await connect(t, other.url, token)
  await client.ping()
  t.equal((await client.listTools()).tools.length, 2)
  const call = client.callTool({ name: 'drop' }, undefined, { timeout: 100 })
  await t.rejects(call, { message: /timed out/ })
  t.strictSame(other.called, [])
})
