import type { Clock } from '../runtime/clock.ts'
import { isWrite, methods, type TableName } from './methods.ts'
import { type Store, StoreError } from './store.ts'

/** Hears of each operation of a store. */
export interface StoreTimes {
  /** @param ms with the wait for its turn */
  ended(kind: 'read' | 'write', ms: number): void
  failed(kind: 'unavailable' | 'in_doubt' | 'fault'): void
}

type UntypedTables = Readonly<
  Record<string, Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>>
>

/** The same store, whose operations are timed. */
export function timedStore(store: Store, clock: Pick<Clock, 'steady'>, times: StoreTimes): Store {
  const timed = (table: TableName, method: string, run: () => Promise<unknown>): Promise<unknown> => {
    const since = clock.steady()
    const done = () => times.ended(isWrite({ table, method }) ? 'write' : 'read', clock.steady() - since)
    return run().then(
      value => {
        done()
        return value
      },
      (error: unknown) => {
        done()
        times.failed(kindOf(error))
        throw error
      },
    )
  }
  // The names of `methods` are those of the tables: the compiler checks it there.
  const tables = store as unknown as UntypedTables
  const wrapped = Object.entries(methods).map(([name, ofTable]) => {
    // The keys of `methods` are names of tables.
    const table = name as TableName
    const calls = Object.keys(ofTable).map(method => [
      method,
      (...args: readonly unknown[]) => timed(table, method, () => tables[table]![method]!(...args)),
    ])
    return [table, Object.fromEntries(calls)]
  })
  const { probe: _, ...all } = Object.fromEntries(wrapped)
  return {
    ...all,
    ping: () => timed('probe', 'ping', () => store.ping()),
    feed: store.feed,
    subscribe: hooks => store.subscribe(hooks),
    close: () => store.close(),
  }
}

function kindOf(error: unknown) {
  if (!(error instanceof StoreError)) return 'fault'
  return error.inDoubt ? 'in_doubt' : 'unavailable'
}
