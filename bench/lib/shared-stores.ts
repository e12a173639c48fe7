/** Several stores on one PostgreSQL, followed as gateways do. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openPostgresStore, type SharedStore } from '../../src/storage/postgres/open.ts'
import { agent, entry, pending, sealed } from '../../test/storage/contract/samples.ts'

export interface Stores {
  readonly all: readonly SharedStore[]
  /** When each store showed a change, by the policy name that it sets. */
  readonly shown: Map<string, number[]>
  close(): Promise<void>
}

export async function openStores(connectionString: string, count: number, schema = 'agent_gateway'): Promise<Stores> {
  const settings = { connectionString, schema, tls: 'Off', poolSize: 8 } as const
  const all: SharedStore[] = []
  const shown = new Map<string, number[]>()
  for (let n = 0; n < count; n++) {
    const store = await openPostgresStore({ settings })
    all.push(store)
    await store.feed.policies.follow({ load: () => undefined, change: () => undefined })
    await store.feed.agents.follow({
      load: () => undefined,
      change(_, now) {
        shown.get(now?.policyName ?? '')?.push(performance.now())
        return undefined
      },
    })
  }
  while (!all.every(store => store.fence.isOpen && store.fleet().peers.length === count)) await nextTurn()
  return { all, shown, close: async () => void (await Promise.all(all.map(store => store.close()))) }
}

export interface ChangeTimes {
  /** Until every store had it, milliseconds. */
  readonly applied: readonly number[]
  readonly answered: readonly number[]
}

/** Changes of one agent, one after the other, on each store in turn. */
export async function measureChanges({ all, shown }: Stores, count: number): Promise<ChangeTimes> {
  await all[0]!.agents.insert(agent('a1'), 'h', entry('agent.register'))
  const applied: number[] = []
  const answered: number[] = []
  for (let n = 0; n < count; n++) {
    const policyName = `p${n}`
    const times: number[] = []
    shown.set(policyName, times)
    const start = performance.now()
    await all[n % all.length]!.agents.update('a1', { policyName }, entry('agent.policy'))
    answered.push(performance.now() - start)
    applied.push(Math.max(...times) - start)
  }
  return { applied, answered }
}

export interface Calls {
  readonly count: number
  /** Calls under way in each store. */
  readonly atOnce: number
}

/** Calls a second of all stores. */
export async function measureRate(
  { all }: Stores,
  { count, atOnce }: Calls,
  call: (store: SharedStore, n: number) => Promise<unknown>,
): Promise<number> {
  let next = 0
  const start = performance.now()
  const work = async (store: SharedStore) => {
    for (let n = next++; n < count; n = next++) await call(store, n)
  }
  await Promise.all(all.flatMap(store => Array.from({ length: atOnce }, () => work(store))))
  return count / ((performance.now() - start) / 1_000)
}

const limits = { maxPending: 1e6, maxPendingOfAgent: 1e6, maxBytes: 1e12, maxBytesOfAgent: 1e12, joinsSince: 0 }
const late = { createdAt: 1_000, expiresAt: 9e12 }

/** A request of one of 50 agents, every second one with an idempotency key. */
export function suspendOne(store: SharedStore, n: number): Promise<unknown> {
  const idempotencyKey = n % 2 === 0 ? `k${n}` : null
  const record = pending(`h${n}`, { agentId: `a${n % 50}`, idempotencyKey, ...late })
  return store.hitl.insert(record, sealed, limits, entry('hitl.suspend'))
}

export function approveOne(store: SharedStore, n: number): Promise<unknown> {
  const claim = {
    reviewer: 'r1',
    comment: null,
    now: 1_500,
    leaseUntil: 9e12,
    owner: 'bench',
    resend: false,
    withdrawn: [],
  }
  return store.hitl.claim(`h${n}`, claim, entry('hitl.approve'))
}
