/** A store from a function that makes calls: what the engines have in common. */
import { keysOf } from '../base/records.ts'
import type { Clock } from '../runtime/clock.ts'
import { methods, type TableName, type Tables } from './methods.ts'
import type { Store } from './store.ts'

/** Makes a call. What it changes is in force when it resolves. */
export type TableCall = (table: TableName, method: string, args: readonly unknown[]) => Promise<unknown>

/** How long a successful probe counts, milliseconds: frequent health checks must not cost disk writes. */
const probeHolds = 1_000

export interface StoreParts extends Pick<Store, 'feed' | 'subscribe' | 'close'> {
  readonly call: TableCall
  readonly clock: Clock
  /** Rejects when the disk is full, on an engine where the write of `probe` needs no space. */
  readonly assertSpace?: () => Promise<void>
}

/** A store whose methods are sent through `call`. */
export function createStore({ call, feed, clock, subscribe, close, assertSpace = async () => {} }: StoreParts): Store {
  const health = createHealth(clock)
  const { probe, ...tables } = bind((...what) => health.watch(call(...what)))
  const test = async () => {
    await probe.ping()
    await assertSpace()
  }
  return { ...tables, feed, ping: () => health.check(test), subscribe, close }
}

/** The tables of the contract, each method sent through `call`. */
export function bind(call: TableCall): Tables {
  const tables = keysOf(methods).map(table => {
    const names = Object.keys(methods[table])
    const bound = names.map(name => [name, (...args: unknown[]) => call(table, name, args)])
    return [table, Object.fromEntries(bound)]
  })
  return Object.fromEntries(tables)
}

/** The health of the store, by its calls, and by probes when there are none. */
function createHealth(clock: Clock) {
  let goodUntil = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  const noteFailure = (): void => {
    goodUntil = Number.NEGATIVE_INFINITY
  }
  async function run(probe: () => Promise<void>): Promise<void> {
    await probe()
    goodUntil = clock.steady() + probeHolds
  }
  return {
    /** A failed call ends the success of the last probe. */
    watch<T>(call: Promise<T>): Promise<T> {
      call.catch(noteFailure)
      return call
    },
    /** Concurrent callers share one run of `probe`; a success holds for a second. */
    async check(probe: () => Promise<void>): Promise<void> {
      if (clock.steady() < goodUntil) return
      running ??= run(probe).finally(() => {
        running = undefined
      })
      return running
    },
  }
}
