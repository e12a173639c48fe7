import { Engine } from 'json-rules-engine'
import type { Ask, PlainRule } from './workload.ts'

/** Stops at the first rule that holds. */
export function createJsonRulesEngine(rules: readonly PlainRule[]): Ask {
  const engine = new Engine()
  engine.addOperator('startsWith', (fact: string, value: string) => fact.startsWith(value))
  for (const rule of rules) engine.addRule(ruleOf(rule, () => engine.stop()))
  return async request => {
    const { events } = await engine.run({ ...request })
    return events[0]?.type === 'Allow'
  }
}

function ruleOf({ host, method, prefix, priority, effect }: PlainRule, onSuccess: () => void) {
  const all = [
    { fact: 'host', operator: 'equal', value: host },
    { fact: 'method', operator: 'equal', value: method },
    { fact: 'path', operator: 'startsWith', value: prefix },
  ]
  return { conditions: { all }, priority, event: { type: effect }, onSuccess }
}
