import type { PolicyEntry } from './entry.ts'

export type Entries<C> = ReadonlyMap<string, PolicyEntry<C>>

/** The policies in force. Each change is one assignment, so that a request sees all of it or nothing. */
export interface Shelf<C> {
  /** By name; a policy of a file or of gateway.yaml hides one of the same name made over the API. */
  readonly inForce: Entries<C>
  /** The same as a list, another one after each change. */
  readonly list: readonly PolicyEntry<C>[]
  /** Of files and of gateway.yaml. */
  readonly fixed: Entries<C>
  /** Made over the API. */
  readonly editable: Entries<C>
  put(change: { readonly fixed?: Entries<C>; readonly editable?: Entries<C> }): void
}

export function createShelf<C>(): Shelf<C> {
  let fixed: Entries<C> = new Map()
  let editable: Entries<C> = new Map()
  let inForce: Entries<C> = new Map()
  let list: readonly PolicyEntry<C>[] = []
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
