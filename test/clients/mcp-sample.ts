/** The policy of docs/mcp.md as it stands there: clients that connect again and again keep the trust of their agent. */

import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { parse } from 'yaml'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startMcpServer } from './fixtures/mcp-server.ts'

const page = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8')
const [, sample = ''] = /^```yaml\n(name: orders\n[\s\S]*?)^```/m.exec(page) ?? []
const gateway = await startGateway(t)
const times = 20

interface Policy {
  readonly rules: readonly { readonly name: string }[]
}

const cases: Readonly<Record<string, readonly string[]>> = {
  'as it stands': [],
  'without the rule for the stream': ['stream-and-end'],
}

for (const [title, left] of Object.entries(cases)) {
  t.test(`an agent whose client connects ${times} times is active and trusted: the sample ${title}`, async t => {
    const policy = parse(sample) as Policy
    const rules = policy.rules.filter(({ name }) => !left.includes(name))
    t.equal(rules.length, policy.rules.length - left.length)
    const asked: (readonly [string, number])[] = []
    let agent: { readonly id: string; readonly token: string } | undefined
    for (let time = 0; time < times; time++) {
      // The server of the tests has one session.
      const { url } = await startMcpServer(t)
      const here = JSON.parse(JSON.stringify({ ...policy, rules }).replaceAll('https://mcp.example.com/mcp', url))
      if (agent === undefined) {
        agent = await gateway.agent({ policyName: await gateway.policy({ ...here, name: `orders-${left.length}` }) })
      } else await gateway.manage('PUT', `/policies/orders-${left.length}`, { ...here, name: `orders-${left.length}` })
      const { token } = agent
      const client = new Client({ name: 'agent', version: '1.0.0' })
      const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/proxy/${url}`), {
        requestInit: { headers: { 'Gateway-Authorization': `Bearer ${token}` } },
        fetch: async (input, init) => {
          const answer = await fetch(input, init)
          asked.push([init?.method ?? 'GET', answer.status])
          return answer
        },
      })
      await client.connect(transport as Parameters<typeof client.connect>[0])
      t.strictSame((await client.listTools()).tools, [], 'tools that the sample denies are not listed')
      await eventually(
        () => asked.filter(([method]) => method === 'GET').length,
        count => count === time + 1,
      )
      await transport.terminateSession()
      await client.close()
    }
    const stream = left.length === 0 ? 200 : 405
    const seen = (method: string) => asked.filter(each => each[0] === method)
    t.strictSame(seen('GET'), Array(times).fill(['GET', stream]))
    t.strictSame(seen('DELETE'), Array(times).fill(['DELETE', stream]))
    const { status, trustScore } = JSON.parse((await gateway.manage('GET', `/agents/${agent?.id}`)).text)
    t.equal(status, 'Active')
    t.ok(trustScore >= 0.5, `trust is ${trustScore}`)
    t.equal(
      gateway.log.filter(({ agentId, refusal }) => agentId === agent?.id && refusal === 'policy_denied').length,
      0,
    )
  })
}
