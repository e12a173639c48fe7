/** Which rules name an endpoint of MCP. Over sockets: test/proxy/mcp-optional.ts. */
import t from 'tap'
import { namesEndpoint } from '../../../src/policy/evaluation/mcp-endpoint.ts'
import { parsePolicy } from '../../../src/policy/language/parse.ts'

const is = (field: string, value: unknown, operator = 'eq', more = {}) => ({ field, operator, value, ...more })
const method = is('mcp.method', 'ping')
const url = is('input.url', 'https://mcp.example.com/mcp')
const host = is('input.host', 'mcp.example.com')
const origin = is('input.origin', 'https://mcp.example.com')
const path = is('input.path', '/mcp')

function names(conditions: readonly object[], effect = 'Allow'): boolean {
  const parsed = parsePolicy({ name: 'p', rules: [{ name: 'r', effect, conditions }] })
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems))
  return namesEndpoint(parsed.policy.rules[0]!)
}

t.test('a rule that lets MCP messages pass at exact URLs names an endpoint', async t => {
  const yes = [
    [method, url],
    [method, host, path],
    [method, origin, path],
    [method, is('input.url', ['https://a.example/mcp', 'https://b.example/mcp'], 'in')],
    [method, { all: [host, { all: [path] }] }],
    [{ any: [method, is('mcp.tool', 'add')] }, url],
    [{ not: is('mcp.tool', 'drop') }, url],
  ]
  for (const conditions of yes) t.ok(names(conditions), JSON.stringify(conditions))
  t.ok(names([method, url], 'Hitl'))
})

t.test('one that leaves the URL to the agent, or reads no message, does not', async t => {
  const no = [
    [method],
    [url],
    [host, path],
    [method, host],
    [method, path],
    [method, host, is('input.path', '/mcp*', 'like')],
    [method, host, is('input.path', '/mcp', 'startsWith')],
    [method, host, is('input.path', '/mcp', 'eq', { ignoreCase: true })],
    [method, path, is('input.host', '*.example.com', 'hostMatches')],
    [method, { any: [url, is('input.method', 'POST')] }],
    [method, { not: url }],
    [method, is('input.url', 'https://mcp.example.com/mcp', 'neq')],
  ]
  for (const conditions of no) t.notOk(names(conditions), JSON.stringify(conditions))
  t.notOk(names([method, url], 'Deny'))
})
