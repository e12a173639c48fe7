import type { Condition, Node, Rule } from '../language/model.ts'
import type { RequestHead } from '../request/input.ts'
import { evaluateHead, PendingDecision } from './decide.ts'
import { innerNodes } from './rule.ts'
import type { Rulebook } from './rulebook.ts'

/**
 * Whether a rule of the agent's own policy may let an MCP message pass at a URL that the rule names exactly. The agent
 * chooses everything else that could distinguish an endpoint of MCP from other URLs.
 *
 * @param post the request as if it were a POST with a body that is not known
 */
export function isMcpEndpoint(rulebook: Rulebook, post: RequestHead): boolean {
  // With a second reading of the path the rule may name another URL than the one that the server serves.
  if (post.readings !== undefined) return false
  const found = evaluateHead(rulebook, post)
  return found instanceof PendingDecision && found.evaluation.ofAgent.pending.some(({ rule }) => namesEndpoint(rule))
}

/** Whether a rule lets messages of MCP pass, and has one list of URLs for them, without patterns. */
export function namesEndpoint({ effect, conditions }: Rule): boolean {
  if (effect === 'Deny' || !conditions.some(readsMcp)) return false
  const exact = conditions.flatMap(conjuncts).filter(isExact)
  const names = (...fields: readonly string[]) => exact.some(({ field }) => fields.includes(field))
  return names('input.url') || (names('input.host', 'input.origin') && names('input.path'))
}

function readsMcp(node: Node): boolean {
  return 'field' in node ? node.field.startsWith('mcp.') : innerNodes(node).some(readsMcp)
}

/** The conditions that all must hold. */
function conjuncts(node: Node): readonly Condition[] {
  if ('field' in node) return [node]
  return 'all' in node ? node.all.flatMap(conjuncts) : []
}

const isExact = ({ operator, ignoreCase }: Condition): boolean =>
  !ignoreCase && (operator === 'eq' || operator === 'in')
