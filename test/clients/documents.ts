/** docs/agents.md as it stands there: its clients with its policy, held, approved and answered. */

import t from 'tap'
import { parse } from 'yaml'
import { eventually } from '../fixtures/gateway.ts'
import { page, runExample } from './fixtures/documented.ts'
import { startMcpServer } from './fixtures/mcp-server.ts'
import { keyOf, said } from './fixtures/model-api.ts'
import { realKey, startModelGateway } from './fixtures/model-gateway.ts'

const { api, gateway } = await startModelGateway(t, false)
const { url: mcpUrl, called } = await startMcpServer(t)
const [, policyText = ''] = /^```yaml\n(name: assistant\n[\s\S]*?)^```/m.exec(page) ?? []
const here = policyText
  .replaceAll(/api\.(?:openai|anthropic)\.com/g, '127.0.0.1')
  .replaceAll('https://mcp.example.com', new URL(mcpUrl).origin)
const policy = parse(here)
const documented = (policy as { rules: { name: string }[] }).rules
const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })

/** Runs an example under some of the rules; a reviewer approves what it is held for. All servers are at one address here. */
async function runHeld(imports: string, upstream: string, names: readonly string[]): Promise<string> {
  const rules = documented.filter(({ name }) => names.includes(name))
  const { token } = await gateway.agent({
    policyName: await gateway.policy({ ...policy, name: `${names.join('-')}-${imports.replace(/\W/g, '')}`, rules }),
  })
  const printed = runExample({ imports, gateway: gateway.url, upstream, token })
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[]
  const [held] = await Promise.race([eventually(list, ({ length }) => length > 0), printed.then(() => [])])
  await gateway.manage('POST', `/hitl/${held?.id}/approve`, {}, reviewer.token)
  return printed
}

for (const imports of ['openai', '@anthropic-ai/sdk']) {
  t.test(`the example with ${imports} waits, prints the answer, and the provider gets the real key`, async t => {
    api.seen.length = 0
    t.equal(await runHeld(imports, api.url, ['prompts']), `${said.join('')}\n`)
    t.match(api.seen.map(keyOf), [new RegExp(realKey)])
  })
}

t.test('the example with the MCP SDK lists the tools, waits for its call of one, and prints the answer', async t => {
  const upstream = mcpUrl.replace('/mcp', '')
  t.equal(
    await runHeld('@modelcontextprotocol/sdk', upstream, ['mcp-stream', 'mcp-session', 'mcp-tools']),
    'add drop\n5\n',
  )
  t.strictSame(called, ['add'])
})
