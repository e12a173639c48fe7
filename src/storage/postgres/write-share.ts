/** Which writes share transactions with which. */
import type { Tables } from '../methods.ts'
import type { StoreOperation } from '../operations.ts'
import type { CallerKind, HitlRecord } from '../store.ts'

export interface WriteShare {
  /** Writes that agents cause are not mixed with those of people. */
  readonly of: CallerKind
  /** The writes of one caller are limited. */
  readonly caller: string
  /** Two with the same key are done one after the other. */
  readonly key: string
  /** Others must not wait for it in one transaction. */
  readonly isLong?: boolean
}

/** Longest request that is written together with others, bytes. */
const maxBytes = 65_536

type WriteShares = {
  readonly [T in keyof Tables]?: {
    readonly [M in keyof Tables[T]]?: Tables[T][M] extends (...args: infer A) => unknown
      ? (...args: A) => WriteShare | undefined
      : never
  }
}

const shares: WriteShares = {
  hitl: {
    insert: shareOfRequest,
    claim: id => ({ of: 'people', caller: id, key: `item ${id}` }),
    deny: id => ({ of: 'people', caller: id, key: `item ${id}` }),
    withdraw: (id, { agentId }) => ({ of: 'agents', caller: agentId, key: `item ${id}` }),
    leave: (id, { agentId }) => ({ of: 'agents', caller: agentId, key: `item ${id}` }),
  },
  grants: { use: (id, _, { actor }) => ({ of: 'agents', caller: actor, key: `grant ${id}` }) },
  agents: {
    // Of trust, which changes with what the agent does.
    judge: id => ({ of: 'agents', caller: id, key: `agent ${id}` }),
  },
}

function shareOfRequest(record: HitlRecord, sealed: Uint8Array): WriteShare {
  const { id, agentId, idempotencyKey, repeatDigest, body } = record
  const key = `request ${agentId} ${idempotencyKey ?? repeatDigest ?? id}`
  return { of: 'agents', caller: agentId, key, isLong: body.length + sealed.length > maxBytes }
}

/** Undefined when the write has a transaction of its own. */
export function shareOf({ table, method, args }: StoreOperation): WriteShare | undefined {
  // Each is such a function, and the arguments are those of the contract.
  const ofTable = shares[table] as Readonly<Record<string, (...args: readonly unknown[]) => WriteShare | undefined>>
  return ofTable?.[method]?.(...args)
}

/** Calls that agents cause, and that share no transaction. */
const ofAgents = new Set([
  ...['hitl.unjoin', 'hitl.keyHolder', 'hitl.waitedFor', 'hitl.sealedResponse'],
  ...['grants.active', 'grants.giveBack', 'grants.releaseKey'],
  ...[
    'tools.digests',
    'tools.keep',
    'shapes.add',
    'shapes.keepSamples',
    'hits.add',
    'agents.secretHash',
    'agents.trust',
  ],
])

/** Who causes a call that shares no transaction. */
export function callerOf({ table, method, args }: StoreOperation): CallerKind {
  // An agent and a reviewer may read and wait for the same item.
  if (table === 'hitl' && (method === 'get' || method === 'brief')) return args[2] === 'agents' ? 'agents' : 'people'
  return ofAgents.has(`${table}.${method}`) ? 'agents' : 'people'
}
