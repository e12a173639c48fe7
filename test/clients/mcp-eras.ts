/** The second SDK of the Model Context Protocol, which speaks both eras, through the gateway: every method of a client. */
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startModernServer } from './fixtures/mcp-modern-server.ts'

const Directory = fileURLToPath(new URL('../../policies', import.meta.url))
const gateway = await startGateway(t, { config: { Policy: { Directory } } })
const server = await startModernServer(t)
const is = (field: string, value: string) => ({ field, operator: 'eq', value })
const policyName = await gateway.policy({
  name: 'sums',
  default: 'Allow',
  rules: [
    {
      name: 'no-drop',
      priority: 9,
      effect: 'Deny',
      reason: 'Nothing is dropped',
      conditions: [is('mcp.tool', 'drop')],
    },
    { name: 'no-umlauts', priority: 9, effect: 'Deny', conditions: [is('mcp.tool', 'größer')] },
    { name: 'no-secret', priority: 9, effect: 'Deny', conditions: [is('mcp.resource', 'file:///secret')] },
    { name: 'ask', priority: 8, effect: 'Hitl', conditions: [is('mcp.tool', 'pay')] },
  ],
})
const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })

async function decide(verdict: 'approve' | 'deny', body: object = {}): Promise<void> {
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[]
  const [item] = await eventually(list, ({ length }) => length === 1)
  await gateway.manage('POST', `/hitl/${item?.id}/${verdict}`, body, reviewer.token)
}

for (const mode of ['legacy', { pin: '2026-07-28' }, 'auto'] as const) {
  const era = typeof mode === 'string' ? mode : mode.pin
  t.test(`a client of the era ${era} gets what the policy allows, and the reason for the rest`, async t => {
    server.called.length = 0
    const { token } = await gateway.agent({ policyName })
    const client = new Client({ name: 'agent', version: '1.0.0' }, { versionNegotiation: { mode } })
    const requestInit = { headers: { 'Gateway-Authorization': `Bearer ${token}` } }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${server.url}`), { requestInit }),
    )
    t.teardown(() => client.close())

    const { tools } = await client.listTools()
    t.strictSame(
      tools.map(({ name }) => name),
      ['add', 'pay'],
    )
    t.match((await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } })).content, [{ text: '5' }])
    for (const name of ['drop', 'größer']) {
      const refused = await client.callTool({ name, arguments: {} }).catch((error: unknown) => error)
      t.match(refused, { code: -32_010, data: { code: 'policy_denied' } }, name)
    }
    t.equal((await client.listResources()).resources.length, 2)
    t.match((await client.readResource({ uri: 'file:///readme' })).contents, [{ text: 'read me' }])
    t.match(await client.readResource({ uri: 'file:///secret' }).catch((error: unknown) => error), { code: -32_010 })
    t.equal((await client.listPrompts()).prompts.length, 1)
    const prompt = await client.getPrompt({ name: 'hello', arguments: { name: 'you' } })
    t.match(prompt.messages, [{ content: { text: 'Hello you' } }])
    t.match((await client.listResourceTemplates()).resourceTemplates, [{ uriTemplate: 'note:///{id}' }])
    t.match((await client.readResource({ uri: 'note:///7' })).contents, [{ text: 'a note' }])
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name: 'hello' },
      argument: { name: 'name', value: 'a' },
    })
    t.strictSame(completed.completion.values, ['anna'])
    if (era === 'legacy') await client.ping()
    else await (await client.listen({ toolsListChanged: true })).close()

    const paid = client.callTool({ name: 'pay', arguments: {} })
    await decide('approve')
    t.match((await paid).content, [{ text: 'pay' }])
    const denied = client.callTool({ name: 'pay', arguments: {} }).catch((error: unknown) => error)
    await decide('deny', { comment: 'too much' })
    t.match(await denied, { code: -32_010, message: /too much/ })
    t.strictSame(server.called, ['add', 'pay'])
  })
}

t.test('a call that a client of 2026-07-28 aborts while it is held is withdrawn', async t => {
  const { token } = await gateway.agent({ policyName })
  const client = new Client(
    { name: 'agent', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  const requestInit = { headers: { 'Gateway-Authorization': `Bearer ${token}` } }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${server.url}`), { requestInit }),
  )
  t.teardown(() => client.close())
  const abort = new AbortController()
  const call = client
    .callTool({ name: 'pay', arguments: {} }, { signal: abort.signal })
    .catch((error: unknown) => error)
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as unknown[]
  await eventually(list, ({ length }) => length === 1)
  abort.abort()
  t.ok((await call) instanceof Error)
  t.strictSame(await eventually(list, ({ length }) => length === 0), [])
})

t.test(
  'the shipped policy lets a client find out the era of a server and list its tools; their calls wait',
  async t => {
    const { token } = await gateway.agent({ policyName: 'default' })
    const client = new Client({ name: 'agent', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
    const requestInit = { headers: { 'Gateway-Authorization': `Bearer ${token}` } }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${server.url}`), { requestInit }),
    )
    t.teardown(() => client.close())
    t.equal((await client.listTools()).tools.length, 4)
    const call = client.callTool({ name: 'add', arguments: { a: 1, b: 1 } }, { timeout: 100 })
    await t.rejects(call, { message: /timed out/i })
  },
)
