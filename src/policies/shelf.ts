import type { PolicyEntry } from './entry.ts'

export type Entries = ReadonlyMap<string, PolicyEntry>

/** The policies in force. Each change is one assignment, so that a request sees all of it or nothing. */
export interface Shelf {
  /** By name; a policy of a file or of gateway.yaml hides one of the same name made over the API. */
  readonly inForce: Entries
  /** The same as a list, another one after each change. */
  readonly list: readonly PolicyEntry[]
  /** Of files and of gateway.yaml. */
  readonly fixed: Entries
  /** Made over the API. */
  readonly editable: Entries
  put(change: { readonly fixed?: Entries; readonly editable?: Entries }): void
}

export function createShelf(): Shelf {
  let fixed: Entries = new Map()
  let editable: Entries = new Map()
  let inForce: Entries = new Map()
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
