/**
 * The methods of the contract by table, and whether each writes. Writes need a transaction of their own on every
 * engine, and an engine in a thread needs the names on both sides.
 */
import type { AgentTable, AuditTable, GrantTable, HitlTable, PolicyTable, Store } from './store.ts'

export interface Tables {
  readonly agents: AgentTable
  readonly policies: PolicyTable
  readonly hitl: HitlTable
  readonly grants: GrantTable
  readonly audit: AuditTable
  readonly probe: Pick<Store, 'ping'>
}

export type TableName = keyof Tables
type Kind = 'read' | 'write'

export const methods: { readonly [T in TableName]: Readonly<Record<keyof Tables[T], Kind>> } = {
  agents: { all: 'read', secretHash: 'read', insert: 'write', update: 'write', remove: 'write' },
  policies: { all: 'read', insert: 'write', update: 'write', remove: 'write' },
  hitl: {
    insert: 'write',
    unjoin: 'write',
    keyHolder: 'read',
    get: 'read',
    brief: 'read',
    pending: 'read',
    countPending: 'read',
    sealed: 'read',
    sealedResponse: 'read',
    claim: 'write',
    release: 'write',
    settle: 'write',
    deny: 'write',
    withdraw: 'write',
    expire: 'write',
    lapse: 'write',
    prune: 'write',
  },
  grants: { insert: 'write', active: 'read', use: 'write', releaseKey: 'write', remove: 'write', prune: 'write' },
  audit: { append: 'write', list: 'read', after: 'read' },
  probe: { ping: 'write' },
}

export function isWrite({ table, method }: { readonly table: TableName; readonly method: string }): boolean {
  const kinds: Readonly<Record<string, Kind>> = methods[table]
  return kinds[method] === 'write'
}
