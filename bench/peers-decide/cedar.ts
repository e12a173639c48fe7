import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs'
import type { Ask, PlainRule } from './workload.ts'

/** A policy set parsed beforehand; forbid and permit instead of an order, which comes to the same for these rules. */
export function createCedar(rules: readonly PlainRule[]): Ask {
  const id = `set-${rules.length}`
  const staticPolicies = Object.fromEntries(rules.map(rule => [rule.name, policyText(rule)]))
  const answer = preparsePolicySet(id, { staticPolicies })
  if (answer.type !== 'success') throw new Error(JSON.stringify(answer.errors))
  return ({ host, method, path }) => {
    const decided = statefulIsAuthorized({
      principal: { type: 'Agent', id: 'a' },
      action: { type: 'Action', id: 'call' },
      resource: { type: 'Host', id: host },
      context: { host, method, path },
      preparsedPolicySetId: id,
      entities: [],
    })
    return decided.type === 'success' && decided.response.decision === 'allow'
  }
}

function policyText({ effect, host, method, prefix }: PlainRule): string {
  const verb = effect === 'Allow' ? 'permit' : 'forbid'
  const condition = `context.method == "${method}" && context.path like "${prefix}*"`
  return `${verb}(principal, action == Action::"call", resource == Host::"${host}") when { ${condition} };`
}
