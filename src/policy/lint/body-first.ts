import { fieldsOf } from '../evaluation/rule.ts'
import { keysOf } from '../evaluation/rule-keys.ts'
import type { Rule } from '../language/model.ts'
import type { Examined } from './examined.ts'
import type { LintWarning } from './warning.ts'

/** Warnings about rules on the body, ranked above rules for the same host that the head alone would settle. */
export function bodyFirstWarnings(examined: Examined): LintWarning[] {
  const waiting = new Map<string, Rule>()
  const found: LintWarning[] = []
  for (const { rule } of examined.compiled.rules) {
    const hosts = keysOf(rule.conditions).hosts ?? []
    if (readsBody(rule)) for (const host of hosts) waiting.has(host) || waiting.set(host, rule)
    else for (const host of hosts) found.push(...heldBy(examined, waiting, host, rule))
  }
  return found
}

function heldBy(examined: Examined, waiting: Map<string, Rule>, host: string, settled: Rule): LintWarning[] {
  const rule = waiting.get(host)
  if (rule === undefined || settled.effect === 'Hitl') return []
  for (const [other, waits] of waiting) if (waits === rule) waiting.delete(other)
  const message = `reads the body before rule ${JSON.stringify(settled.name)}, which needs only the head: bodies are held`
  return [examined.warn('W_BODY_FIRST', rule, message)]
}

function readsBody(rule: Rule): boolean {
  return rule.conditions.flatMap(fieldsOf).some(field => field.kind.phase !== 'head')
}
