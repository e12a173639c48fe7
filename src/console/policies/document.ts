/** A policy as an author writes it. */
import type { Condition, Policy } from '../types.ts'

/** Operators whose value may be a list: the gateway tells lists as text. */
export const listOperators: readonly string[] = [
  ...['in', 'notIn', 'hasAll', 'between', 'pathMatches', 'notPathMatches', 'hostMatches', 'notHostMatches'],
  ...['ipIn', 'notIpIn', 'typeIs', 'detects'],
]

/** The text of a document, with lists as lists. */
export const documentText = (document: object): string => JSON.stringify(withLists(document), null, 2)

/** The text of a policy in force, without what the gateway adds. */
export function textOfPolicy(policy: Policy): string {
  const { CreatedOn: _, version: __, source: ___, hits: ____, shadow: _____, ...document } = policy
  return documentText(document)
}

function withLists(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withLists)
  if (typeof node !== 'object' || node === null) return node
  const condition = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, withLists(value)]))
  return 'value' in condition ? { ...condition, value: writtenValue(condition) } : condition
}

/** The value of a condition, with a list as a list. */
export function writtenValue({ operator, value }: Pick<Condition, 'operator' | 'value'>): unknown {
  const isList = typeof value === 'string' && operator !== undefined && listOperators.includes(operator)
  return (isList ? listOf(value) : undefined) ?? value
}

/** Undefined: it is no list, or would not be the same text again. */
function listOf(text: string): unknown {
  if (!text.startsWith('[')) return undefined
  try {
    const list: unknown = JSON.parse(text)
    return JSON.stringify(list) === text ? list : undefined
  } catch {
    return undefined
  }
}
