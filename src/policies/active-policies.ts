import type { PolicyEntry } from './entry.ts'

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
  readonly editable: PolicyEntries
  put(change: { readonly fixed?: PolicyEntries; readonly editable?: PolicyEntries }): void
}

export function createActivePolicies(): ActivePolicies {
  let fixed: PolicyEntries = new Map()
  let editable: PolicyEntries = new Map()
  let inForce: PolicyEntries = new Map()
  let list: readonly PolicyEntry[] = []
  return {
    get inForce() {
      return inForce
    },
    get list() {
      return list
    },
    get fixed() {
      return fixed
    },
    get editable() {
      return editable
    },
    put(change) {
      fixed = change.fixed ?? fixed
      editable = change.editable ?? editable
      inForce = new Map([...editable, ...fixed].sort(([left], [right]) => (left < right ? -1 : 1)))
      list = [...inForce.values()]
    },
  }
}
