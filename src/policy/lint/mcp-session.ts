import { namesEndpoint } from '../evaluation/mcp-endpoint.ts'
import { fieldsOf } from '../evaluation/rule.ts'
import type { Rule } from '../language/model.ts'
import { type DescribedRequest, requestFromDescription } from '../request/describe.ts'
import { type Examined, factsOf } from './examined.ts'
import type { LintWarning } from './warning.ts'
import { witnessOf } from './witness.ts'

/** How clients of MCP open the stream of a session and end it. */
const sessionRequests = [
  ['GET', 'open a stream with GET'],
  ['DELETE', 'end the session with DELETE'],
] as const

const sessionHeaders = { accept: 'text/event-stream', 'mcp-session-id': 'x', 'mcp-protocol-version': '2025-11-25' }

/**
 * A warning about the first Allow rule for MCP at a URL where the policy refuses what a session needs. Where the rule names
 * the URL exactly and only the default denies, clients get 405 and go on.
 */
export function mcpSessionWarnings(examined: Examined): LintWarning[] {
  for (const { rule } of examined.compiled.rules) {
    if (rule.effect !== 'Allow' || !rule.conditions.flatMap(fieldsOf).some(({ text }) => text.startsWith('mcp.')))
      continue
    const request = witnessOf(rule.conditions)
    if (request === undefined || examined.walk(factsOf(request)).effect !== 'Allow') continue
    const lacking = sessionRequests.filter(([method]) => !isAnswered(examined, rule, request, method))
    if (lacking.length === 0) continue
    const what = lacking.map(([, words]) => words).join(' and ')
    const message =
      `clients of MCP ${what} at the same URL, which this policy refuses: ` +
      `name the URL exactly (input.url eq), or allow GET and DELETE with input.bodyInfo.size eq 0`
    return [examined.warn('W_MCP_SESSION', rule, message)]
  }
  return []
}

/** Whether a request of a session is allowed, or refused in a way that clients expect. */
function isAnswered(examined: Examined, rule: Rule, { head }: DescribedRequest, method: string): boolean {
  const { url, agent, destination } = head
  const destinationIp = destination === undefined ? {} : { destinationIp: destination.ip }
  const request = { method, url, headers: sessionHeaders, ...destinationIp }
  const made = requestFromDescription({ request, agent: { ...agent, claims: agent.claims ?? {} } }, 0)
  if ('problem' in made) return false
  const { effect, last } = examined.walk(factsOf(made))
  return effect === 'Allow' || (effect === 'Deny' && last === undefined && namesEndpoint(rule))
}
