import type { Clock } from '../runtime/clock.ts'
import { bind } from './bind.ts'
import { isWrite } from './methods.ts'
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
  // The calls are those of the tables.
  const tables = { ...store, probe: { ping: store.ping } } as unknown as UntypedTables
  const { probe, ...all } = bind((table, method, args) => {
    const since = clock.steady()
    const done = () => times.ended(isWrite({ table, method }) ? 'write' : 'read', clock.steady() - since)
    return tables[table]![method]!(...args).then(
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
  })
  return {
    ...all,
    ping: probe.ping,
    feed: store.feed,
    subscribe: hooks => store.subscribe(hooks),
    close: () => store.close(),
  }
}

function kindOf(error: unknown) {
  if (!(error instanceof StoreError)) return 'fault'
  return error.inDoubt ? 'in_doubt' : 'unavailable'
}
