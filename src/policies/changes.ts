import type { PolicyEntry } from './entry.ts'

/** Changes by a reload of the policies of files and gateway.yaml, by name. */
export type PolicyChanges = ReturnType<typeof changesBetween>

type List = readonly Pick<PolicyEntry, 'source' | 'document' | 'compiled'>[]

export function changesBetween(before: List, after: List) {
  const old = byName(before)
  const now = byName(after)
  const kept = [...now].filter(
    ([name, { compiled }]) => old.has(name) && old.get(name)?.compiled.version !== compiled.version,
  )
  return {
    /** In force now. */
    count: now.size,
    added: [...now.keys()].filter(name => !old.has(name)),
    changed: kept.map(([name]) => name),
    removed: [...old.keys()].filter(name => !now.has(name)),
    /** A line for each policy that has fewer rules than before: a file that was cut off may still be a valid policy. */
    shrunk: kept.flatMap(([name, { document }]) => {
      const rules = old.get(name)?.document.rules.length ?? 0
      const left = document.rules.length
      return left < rules ? [`policy ${name} has fewer rules than before: ${rules}, now ${left}`] : []
    }),
  }
}

function byName(list: List): ReadonlyMap<string, List[number]> {
  return new Map(list.filter(({ source }) => source !== 'api').map(entry => [entry.document.name, entry]))
}

/** Names that a line of the log lists. */
const maxNames = 20

/** For the log: `changed a, b; removed c`. */
export function describeChanges({ added, changed, removed }: PolicyChanges): string {
  const parts = Object.entries({ added, changed, removed }).flatMap(([what, names]) => {
    if (names.length === 0) return []
    const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
    return [`${what} ${names.slice(0, maxNames).join(', ')}${more}`]
  })
  return parts.length === 0 ? 'nothing changed' : parts.join('; ')
}
