/**
 * The methods of the contract by table, and whether each writes. Writes need a transaction of their own on every
 * engine, and an engine in a thread needs the names on both sides.
 */

import type { Db } from './schema.ts'
import type { Store } from './store.ts'
import type { Unit } from './unit.ts'

/** The tables of the contract, and the probe of `ping`. */
export type Tables = Omit<Store, 'ping' | 'feed' | 'subscribe' | 'close'> & { readonly probe: Pick<Store, 'ping'> }

export type TableName = keyof Tables
type Kind = 'read' | 'write'

export const methods = {
  agents: {
    all: 'read',
    secretHash: 'read',
    insert: 'write',
    update: 'write',
    trust: 'read',
    judge: 'write',
    reset: 'write',
    remove: 'write',
    addKey: 'write',
    removeKey: 'write',
    keyUses: 'read',
    noteKeyUses: 'write',
  },
  identities: { of: 'read', holder: 'read', set: 'write', add: 'write' },
  policies: { all: 'read', insert: 'write', update: 'write', remove: 'write', apply: 'write' },
  hitl: {
    insert: 'write',
    unjoin: 'write',
    leave: 'write',
    waitedFor: 'read',
    keyHolder: 'read',
    get: 'read',
    brief: 'read',
    pending: 'read',
    history: 'read',
    ends: 'read',
    oldestPending: 'read',
    countPending: 'read',
    sealed: 'read',
    sealedResponse: 'read',
    due: 'read',
    claim: 'write',
    release: 'write',
    recordOutcome: 'write',
    deny: 'write',
    withdraw: 'write',
    extend: 'write',
    expire: 'write',
    lapse: 'write',
    prune: 'write',
  },
  messages: { keep: 'write', stale: 'read', note: 'write' },
  subscriptions: { key: 'write', all: 'read', keep: 'write', remove: 'write' },
  grants: {
    insert: 'write',
    active: 'read',
    list: 'read',
    use: 'write',
    giveBack: 'write',
    releaseKey: 'write',
    remove: 'write',
    prune: 'write',
  },
  tools: { digests: 'read', keep: 'write' },
  shapes: { add: 'write', of: 'read', keepSamples: 'write', samples: 'read', clear: 'write', prune: 'write' },
  hits: { add: 'write', of: 'read', prune: 'write' },
  codes: { keep: 'write', take: 'write' },
  credentials: {
    all: 'read',
    of: 'read',
    list: 'read',
    lease: 'write',
    put: 'write',
    note: 'write',
    keepConsent: 'write',
    takeConsent: 'write',
  },
  tokens: { all: 'read' },
  spend: {
    lease: 'write',
    forfeit: 'write',
    list: 'read',
    find: 'read',
    totals: 'read',
    notify: 'write',
    raise: 'write',
    prune: 'write',
  },
  deliveries: { take: 'write', next: 'read', remove: 'write', leave: 'write', prune: 'write' },
  audit: { append: 'write', list: 'read', after: 'read', verify: 'read', kept: 'read', keep: 'write' },
  probe: { ping: 'write' },
} as const satisfies { readonly [T in TableName]: Readonly<Record<keyof Tables[T], Kind>> }

/** The methods of a table as functions of what they work on. Each write runs inside one transaction. */
export type Operations<T extends TableName> = {
  readonly [M in keyof Tables[T]]: Tables[T][M] extends (...args: infer A) => infer R
    ? (on: M extends keyof (typeof methods)[T] ? Works<(typeof methods)[T][M]> : never, ...args: A) => R
    : never
}

export type HitlOperations = Operations<'hitl'>

type Works<K> = K extends 'write' ? Unit : Db

export function isWrite({ table, method }: { readonly table: TableName; readonly method: string }): boolean {
  const kinds: Readonly<Record<string, Kind>> = methods[table]
  return kinds[method] === 'write'
}
