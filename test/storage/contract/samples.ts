import type { Test } from 'tap'
import type {
  AgentRecord,
  AuditEntry,
  AuditRecord,
  GatewayAttempts,
  HitlItem,
  HitlRecord,
  Store,
} from '../../../src/storage/store.ts'

/** Emptied between two tests. */
export const tables = [
  ...['agents', 'policies', 'hitl', 'hitl_totals', 'grants', 'granted_keys', 'seen_tools', 'token_epoch'],
  ...['identities', 'messages', 'console_codes', 'deliveries', 'hooks', 'audit', 'audit_pass', 'spend', 'spend_leases'],
  ...[
    'agent_shapes',
    'shape_gaps',
    'agent_samples',
    'rule_hits',
    'push_key',
    'push_browsers',
    'credentials',
    'consents',
  ],
]

/** Gives an empty store that closes with the test. */
export type Engine = (t: Test) => Promise<Store>

export function agent(id: string, over: Partial<AgentRecord> = {}): AgentRecord {
  return {
    id,
    name: `agent ${id}`,
    ownerId: 'owner',
    status: 'Active',
    policyName: null,
    roles: ['agent'],
    externalSubject: null,
    tags: {},
    trustValue: 0.5,
    trustAt: 1_000,
    createdAt: 1_000,
    weakSecret: false,
    recording: null,
    keys: [],
    ...over,
  }
}

export function entry(action: string, over: Partial<AuditEntry> = {}): AuditEntry {
  return { at: 1_000, actor: 'admin', action, subject: 'subject', requestId: null, details: {}, ...over }
}

/** Created at 1,000 and expires at 2,000. */
export function pending(id: string, over: Partial<HitlRecord> = {}): HitlRecord {
  return {
    id,
    agentId: 'a1',
    ownerId: 'owner',
    method: 'POST',
    url: 'https://API.example:8443/orders?x=1',
    headers: { 'content-type': 'text/plain', accept: '*/*' },
    body: 'Grüße',
    places: '[[1,2]]',
    bodyEncoding: 'utf8',
    bodyBytes: 7,
    reason: 'rule orders',
    decision: '{"effect":"Hitl"}',
    policyName: 'default',
    policyVersion: '1',
    rule: 'orders',
    approvalsNeeded: 1,
    digest: `digest ${id}`,
    idempotencyKey: null,
    repeatDigest: null,
    createdAt: 1_000,
    expiresAt: 2_000,
    summary: `{"id":"${id}"}`,
    call: { kind: 'polls' },
    ...over,
  }
}

export const roomy = {
  ...{ maxPending: 1_000, maxPendingOfAgent: 1_000, joinsSince: 0 },
  ...{ maxBytes: 1e9, maxBytesOfAgent: 1e9 },
}
export const sealed = new Uint8Array([0, 255, 1, 2, 3])

/** Suspends one request. */
export function suspend(store: Store, id: string, over: Partial<HitlRecord> = {}) {
  return store.hitl.insert(pending(id, over), sealed, roomy, entry('hitl.suspend', { subject: id }))
}

export function approve(store: Store, id: string, over: Partial<Parameters<Store['hitl']['claim']>[1]> = {}) {
  const claim = {
    reviewer: 'r1',
    comment: null,
    now: 1_500,
    leaseUntil: 1_600,
    owner: 'g1',
    resend: false,
    withdrawn: [],
    ...over,
  }
  return store.hitl.claim(id, claim, entry('hitl.approve', { actor: claim.reviewer, subject: id }))
}

/** The attempts of a gateway that has none. */
export const nobody = { owner: 'g0', held: [], over: [] }

export function lapse(store: Store, now: number, own: GatewayAttempts = nobody) {
  return store.hitl.lapse(now, own, 100)
}

export function deny(store: Store, id: string, reviewer = 'r1', now = 1_500) {
  return store.hitl.deny(id, { reviewer, comment: 'no', now }, entry('hitl.deny', { actor: reviewer, subject: id }))
}

export function settle(store: Store, id: string, attempt: number, replay: 'completed' | 'failed' | 'unknown') {
  const outcome = { replay, responseStatus: replay === 'completed' ? 201 : null, sealedResponse: null }
  return store.hitl.recordOutcome(id, attempt, outcome, entry('hitl.replay', { subject: id }))
}

export async function get(store: Store, id: string): Promise<HitlItem> {
  const item = await store.hitl.get(id, 1_500)
  if (item === undefined) throw new Error(`no item ${id}`)
  return item
}

/** All of the trail, oldest first. */
export function trail(store: Store): Promise<readonly AuditRecord[]> {
  return store.audit.after(0, 100_000)
}

export async function actions(store: Store): Promise<string[]> {
  return (await trail(store)).map(record => record.action)
}
