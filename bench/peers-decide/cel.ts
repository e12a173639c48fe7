import { parse } from '@marcbachmann/cel-js'
import type { Ask, PlainRule } from './workload.ts'

/** One parsed expression for each rule, asked in order until one holds. */
export function createCel(rules: readonly PlainRule[]): Ask {
  const parsed = rules.map(({ host, method, prefix, effect }) => ({
    holds: parse(`host == "${host}" && method == "${method}" && path.startsWith("${prefix}")`),
    allows: effect === 'Allow',
  }))
  return request => parsed.find(({ holds }) => holds({ ...request }) === true)?.allows ?? false
}
