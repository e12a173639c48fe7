/** The examples of docs/agents.md with the SDKs of model providers; that with MCP is in mcp.ts. */
import t from '../fixtures/tap.ts'
import { runExample } from './fixtures/documented.ts'
import { keyOf, said } from './fixtures/model-api.ts'
import { realKey, startModelGateway } from './fixtures/model-gateway.ts'

const { api, gateway, token } = await startModelGateway(t, false)

for (const imports of ['openai', '@anthropic-ai/sdk']) {
  t.test(`the example with ${imports} works as pasted, and the provider gets the real key`, async t => {
    api.seen.length = 0
    t.equal(await runExample({ imports, gateway: gateway.url, upstream: api.url, token }), `${said.join('')}\n`)
    t.match(api.seen.map(keyOf), [new RegExp(realKey)])
  })
}
