import { newEnforcer, newModelFromString, StringAdapter } from 'casbin'
import type { Ask, PlainRule } from './workload.ts'

const model = `
[request_definition]
r = host, method, path
[policy_definition]
p = priority, host, method, path, eft
[policy_effect]
e = priority(p.eft) || deny
[matchers]
m = r.host == p.host && r.method == p.method && keyMatch(r.path, p.path)
`

export async function createCasbin(rules: readonly PlainRule[]): Promise<Ask> {
  const lines = rules.map(({ host, method, prefix, effect }, index) => {
    return `p, ${index}, ${host}, ${method}, ${prefix}*, ${effect.toLowerCase()}`
  })
  const enforcer = await newEnforcer(newModelFromString(model), new StringAdapter(lines.join('\n')))
  return ({ host, method, path }) => enforcer.enforceSync(host, method, path)
}
