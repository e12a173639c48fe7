import type { PolicyEntry, StoredEntry } from './entry.ts'

export type PolicyEntries = ReadonlyMap<string, PolicyEntry>

/** The policies in force. Each change is one assignment, so that a request sees all of it or nothing. */
export interface ActivePolicies {
  /** By name; a policy of a file or of gateway.yaml hides one of the same name made over the API. */
  readonly inForce: PolicyEntries
  /** The same as a list, another one after each change. */
  readonly list: readonly PolicyEntry[]
  /** Of files and of gateway.yaml. */
  readonly fixed: PolicyEntries
  /** Made over the API. */
  readonly editable: ReadonlyMap<string, StoredEntry>
  put(change: ActiveChange): void
}

interface ActiveChange {
  readonly fixed?: PolicyEntries
  readonly editable?: ReadonlyMap<string, StoredEntry>
}

export function createActivePolicies(): ActivePolicies {
  const none: ReadonlyMap<string, StoredEntry> = new Map()
  const list: readonly PolicyEntry[] = []
  // Members instead of getters: each request reads the list.
  const active = { fixed: none as PolicyEntries, editable: none, inForce: none as PolicyEntries, list, put }
  function put({ fixed = active.fixed, editable = active.editable }: ActiveChange): void {
    const inForce = new Map([...editable, ...fixed].sort(([left], [right]) => (left < right ? -1 : 1)))
    Object.assign(active, { fixed, editable, inForce, list: [...inForce.values()] })
  }
  return active
}
