import { parseHostPattern } from '../../base/host.ts'
import { fieldKinds } from '../language/fields/field-table.ts'
import type { Condition, Node } from '../language/model.ts'
import { literalPrefix } from '../language/operators/patterns.ts'
import { readWords } from '../language/operators/values.ts'

/**
 * The place of a rule in the index: hosts and path beginnings outside of which it certainly does not match. Taken from
 * conditions on the host and the path alone, which are always known and readable.
 */
export interface RuleKeys {
  /** Undefined: any host. A key that begins with a dot stands for every host that ends so. */
  readonly hosts: readonly string[] | undefined
  /** Beginnings of the path up to a slash or its end; undefined: any path. */
  readonly paths: readonly string[] | undefined
}

/** A rule with more keys is cheaper to ask each time than to list under each. */
const maxKeys = 256
/** Longest path beginning that is looked up, segments. */
export const maxPathDepth = 6

export function keysOf(conditions: readonly Node[]): RuleKeys {
  return { hosts: fewest(conditions, hostKeys), paths: fewest(conditions, pathKeys) }
}

type KeysOf = (condition: Condition) => readonly string[] | undefined

/** Conditions hold together, so that any one of them may stand for all: the one with the fewest keys does. */
function fewest(nodes: readonly Node[], keys: KeysOf): readonly string[] | undefined {
  let best: readonly string[] | undefined
  for (const node of nodes) {
    const found = keysOfNode(node, keys)
    if (found !== undefined && found.length <= maxKeys && (best === undefined || found.length < best.length))
      best = found
  }
  return best
}

function keysOfNode(node: Node, keys: KeysOf): readonly string[] | undefined {
  if ('field' in node) return keys(node)
  if ('all' in node) return fewest(node.all, keys)
  return 'any' in node ? union(node.any, keys) : undefined
}

/** One of the nodes holds: every one of them must have keys. */
function union(nodes: readonly Node[], keys: KeysOf): readonly string[] | undefined {
  const all = new Set<string>()
  for (const node of nodes) {
    const found = keysOfNode(node, keys)
    if (found === undefined) return undefined
    for (const key of found) all.add(key)
  }
  return [...all]
}

function hostKeys(condition: Condition): readonly string[] | undefined {
  const { field, operator, value } = condition
  if (field === 'input.origin') return equalTo(condition)?.map(hostOfOrigin)
  if (field !== 'input.host') return undefined
  if (operator === 'endsWith') return value.startsWith('.') ? [value.toLowerCase()] : undefined
  return operator === 'hostMatches' ? readWords(value).flatMap(patternKeys) : equalTo(condition)
}

/** The values of an equality, as requests have them. */
function equalTo({ field, operator, value }: Condition): readonly string[] | undefined {
  const words = operator === 'eq' ? [value] : operator === 'in' ? readWords(value) : undefined
  const { normalise } = fieldKinds.get(field) ?? {}
  return words?.map(word => normalise?.(word) ?? word)
}

const hostOfOrigin = (origin: string) => origin.replace(/^https?:\/\/|:\d+$/g, '')

function patternKeys(word: string): readonly string[] {
  const pattern = parseHostPattern(word.toLowerCase())
  return [pattern?.exact, pattern?.suffix].filter(key => key !== undefined)
}

function pathKeys(condition: Condition): readonly string[] | undefined {
  const { field, operator, value } = condition
  if (field !== 'input.path' || condition.ignoreCase) return undefined
  if (operator === 'startsWith') return usable([value.slice(0, value.lastIndexOf('/'))])
  if (operator === 'eq') return usable([value])
  const words = operator === 'in' || operator === 'pathMatches' ? readWords(value) : undefined
  if (words === undefined) return undefined
  return usable(operator === 'in' ? words : words.map(literalPrefix))
}

/** Cut to the depth that is looked up; a path that may begin in any way has no key. */
function usable(paths: readonly string[]): readonly string[] | undefined {
  return paths.every(path => path.startsWith('/') && path.length > 1) ? paths.map(cut) : undefined
}

function cut(path: string): string {
  let end = 0
  for (let depth = 0; depth < maxPathDepth; depth++) {
    end = path.indexOf('/', end + 1)
    if (end < 0) return path
  }
  return path.slice(0, end)
}
