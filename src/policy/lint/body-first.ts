import { type CompiledRule, fieldsOf } from '../evaluation/rule.ts'
import { keysOf } from '../evaluation/rule-keys.ts'
import type { Node } from '../language/model.ts'
import { Facts } from '../request/facts.ts'
import { noRisk } from '../risk/risk.ts'
import { False } from '../values/truth.ts'
import { type Examined, holds } from './examined.ts'
import type { LintWarning } from './warning.ts'
import { witnessOf } from './witness.ts'

/** Rules on the body of one host that a rule on the head is compared with. */
const maxCompared = 8

/**
 * Warnings about rules on the body, ranked above rules for the same host that the head alone would decide. Each is shown by
 * the head of a request, for which the one rule waits and the other holds.
 */
export function bodyFirstWarnings(examined: Examined): LintWarning[] {
  const waiting = new Waiting()
  return examined.compiled.rules.flatMap(compiled => {
    const hosts = keysOf(compiled.rule.conditions).hosts ?? []
    if (!isOfHead(compiled.rule.conditions)) waiting.add(hosts, compiled)
    else if (compiled.effect !== 'Hitl') {
      const waits = waiting.take(hosts, compiled)
      const name = JSON.stringify(compiled.rule.name)
      const message = `reads the body before rule ${name}, which needs only the head: bodies are held`
      if (waits !== undefined) return [examined.warn('W_BODY_FIRST', waits.rule, message)]
    }
    return []
  })
}

/** Rules on the body by host, as far as they have no warning yet. */
class Waiting {
  readonly #byHost = new Map<string, Set<CompiledRule>>()

  add(hosts: readonly string[], compiled: CompiledRule): void {
    for (const host of hosts) {
      const known = this.#byHost.get(host)
      if (known === undefined) this.#byHost.set(host, new Set([compiled]))
      else if (known.size < maxCompared) known.add(compiled)
    }
  }

  /** Takes out a rule that delays requests which `first` would decide. */
  take(hosts: readonly string[], first: CompiledRule): CompiledRule | undefined {
    for (const host of hosts) {
      for (const compiled of this.#byHost.get(host) ?? []) {
        if (!holdsUp(compiled, first)) continue
        for (const other of keysOf(compiled.rule.conditions).hosts ?? []) this.#byHost.get(other)?.delete(compiled)
        return compiled
      }
    }
    return undefined
  }
}

/** Whether `waits` needs the body of a request that `first` would decide. */
function holdsUp(waits: CompiledRule, first: CompiledRule): boolean {
  const [ofHead, others] = [waits.rule.conditions.filter(node => isOfHead([node])), first.rule.conditions]
  // Where both name a value, the last one stays.
  return [
    [...ofHead, ...others],
    [...others, ...ofHead],
  ].some(nodes => {
    const made = witnessOf(nodes)
    if (made === undefined) return false
    const facts = new Facts({ ...made.head, contentLength: -1 }, noRisk)
    return holds(first, facts) && waits.nodes.every(({ node, test }) => isOfRisk(node) || test(facts) !== False)
  })
}

const isOfHead = (nodes: readonly Node[]) => nodes.flatMap(fieldsOf).every(({ kind }) => kind.phase === 'head')

/** The score is known once the body is. */
const isOfRisk = (node: Node) => fieldsOf(node).some(({ kind }) => kind.phase === 'risk')
