import t from 'tap'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

const url = { field: 'input.url', operator: 'startsWith', value: 'https://mcp.example.com/' }
const exact = { field: 'input.url', operator: 'eq', value: 'https://mcp.example.com/mcp' }
const bodiless = { field: 'input.bodyInfo.size', operator: 'eq', value: 0 }
const methods = (...value: string[]) => ({ field: 'input.method', operator: 'in', value })
const tool = { field: 'mcp.tool', operator: 'eq', value: 'search' }
const allow = (name: string, ...conditions: object[]) => ({ name, effect: 'Allow', conditions })

function session(rules: readonly object[], rest: object = {}): (string | undefined)[] {
  const { warnings } = lintPolicy(policyOf({ name: 'p', rules, ...rest }))
  return warnings.filter(({ code }) => code === 'W_MCP_SESSION').map(({ rule, message }) => `${rule}: ${message}`)
}

t.test('a policy that allows calls, and denies or holds what the session needs, is named', async t => {
  t.match(session([allow('tools', url, tool)]), [/^tools: .*stream with GET and end the session with DELETE/])
  t.match(session([allow('tools', url, tool)], { default: 'Hitl' }), [/GET and/])
  const get = allow('get', url, methods('GET'), bodiless)
  t.match(session([allow('tools', url, tool), get]), [/clients of MCP end the session with DELETE/])
  t.match(session([allow('tools', url, methods('POST'), tool)]), [/^tools: /])
  const resource = { field: 'mcp.resource', operator: 'startsWith', value: 'file:' }
  t.match(session([allow('resources', url, resource)]), [/^resources: /])
})

t.test('a policy that names the URL exactly is not, unless a rule refuses them: clients expect 405', async t => {
  t.strictSame(session([allow('tools', exact, tool)]), [])
  t.match(session([allow('tools', exact, tool)], { default: 'Hitl' }), [/^tools: /])
  const readOnly = { name: 'no-deletes', effect: 'Deny', conditions: [methods('DELETE')] }
  t.match(session([allow('tools', exact, tool), readOnly]), [/clients of MCP end the session with DELETE/])
})

t.test('a policy that allows them, at any place, is not', async t => {
  const both = allow('session', url, methods('GET', 'DELETE'), bodiless)
  t.strictSame(session([allow('tools', url, tool), both]), [])
  t.strictSame(session([allow('tools', url, tool), allow('all', bodiless)]), [])
  t.strictSame(session([{ ...allow('tools', url, tool), effect: 'Hitl' }]), [], 'nothing of MCP is allowed')
  t.strictSame(session([allow('shop', url)]), [])
})
