/**
 * What gateways ask their store by themselves, and what the pages of the console ask it, with the rows that each may read.
 * The first list is complete: `test/storage/long-life/idle.ts` compares it with a gateway that nobody calls.
 */
import type { StoreOperation } from '../../../src/storage/operations.ts'
import { begin, endOf, type LongLife } from '../../fixtures/long-life.ts'

export interface Bounded {
  readonly what: string
  /** Rows that one call may read, of tables and of indexes. */
  readonly rows: number
  readonly asked: StoreOperation
}

/** How often PostgreSQL does each: from the sixth time on it may take a plan for any values. */
export const times = 12
/** Removed or changed at a time by the sweeps: `src/hitl/sweep.ts`. */
const batch = 100
const mostDeliveries = 10_000
const own = { owner: 'gateway', held: [], over: [] }
/** After the time at which everything ends that waits or holds. */
const late = 5_000_000_000_000

const call = (table: StoreOperation['table'], method: string, ...args: readonly unknown[]): StoreOperation => ({
  table,
  method,
  args,
})

/**
 * What a batch of grants reads of PostgreSQL where it is repeated `times` times, the mean of all. It removes `batch` rows of two
 * tables, which it finds by an index and again by their keys. The index goes on to have those of the batches before, as long as
 * anybody in the database has a snapshot from before: the n-th batch passes n batches there. A few rows are of the transaction.
 */
const rowsOfGrants = 2 * ((times + 1) / 2 + 1) * batch + 50

/** Operations that nobody calls. */
export function byItself(life: LongLife): readonly Bounded[] {
  const now = endOf(life) + 1
  const none = { now, decided: begin, delivered: begin, most: mostDeliveries }
  const lease = { owner: 'gateway', now, until: now + 1 }
  return [
    { what: 'a look for what is due, with nothing due', rows: 120, asked: call('hitl', 'due', none) },
    { what: 'the count of what waits', rows: 150, asked: call('hitl', 'countPending', now) },
    { what: 'the oldest that waits', rows: 10, asked: call('hitl', 'oldestPending', now) },
    { what: 'a replay has lapsed', rows: 60, asked: call('hitl', 'lapse', now, own, batch) },
    { what: 'nothing has expired', rows: 10, asked: call('hitl', 'expire', now, batch) },
    { what: 'nothing is old enough to be removed', rows: 10, asked: call('hitl', 'prune', begin, batch) },
    { what: 'no grant is over', rows: 20, asked: call('grants', 'prune', now, batch) },
    { what: 'no message is too old', rows: 200, asked: call('deliveries', 'prune', begin, mostDeliveries) },
    { what: 'no shape is too old', rows: 120, asked: call('shapes', 'prune', begin, begin, batch) },
    { what: 'no count of a rule is too old', rows: 20, asked: call('hits', 'prune', 0, batch) },
    { what: 'a hook is taken', rows: 20, asked: call('deliveries', 'take', ['hook 1'], lease) },
    { what: 'the next messages of a hook', rows: 150, asked: call('deliveries', 'next', 'hook 1', 50) },
    { what: 'a message was sent', rows: 10, asked: call('deliveries', 'remove', [{ id: 1, event: 'event 1' }]) },
    { what: 'a hook is given back', rows: 40, asked: call('deliveries', 'leave', 'nobody') },
    {
      what: 'a stretch of the trail is verified',
      rows: 400,
      asked: call('audit', 'verify', { seq: 1, hash: '' }, 250),
    },
    { what: 'how far the verification got', rows: 10, asked: call('audit', 'kept') },
    { what: 'how far the verification gets', rows: 20, asked: call('audit', 'keep', new Uint8Array(100)) },
    { what: 'the probe', rows: 40, asked: call('probe', 'ping') },
    // For each, PostgreSQL reads the totals of all 100 agents: it takes the index where there are more.
    { what: 'a batch of requests expires', rows: 160 * batch, asked: call('hitl', 'expire', late, batch) },
    { what: 'a batch of past requests is removed', rows: 40 * batch, asked: call('hitl', 'prune', now, batch) },
    { what: 'a batch of grants is removed', rows: rowsOfGrants, asked: call('grants', 'prune', late, batch) },
    { what: 'shapes are too old', rows: 20 * batch, asked: call('shapes', 'prune', late, begin, batch) },
    { what: 'counts of rules are too old', rows: 20 * batch, asked: call('hits', 'prune', late, batch) },
    { what: 'ten hooks have too many messages', rows: 50_000, asked: call('deliveries', 'prune', begin, 800) },
  ]
}

/** One call of a page that looks at as many rows as it may: `src/storage/tables/looks.ts`. */
const looked = 25_200
const page = { page: 1, pageSize: 50 }

/** What the pages of the console ask. */
export function ofPages(life: LongLife): readonly Bounded[] {
  const now = endOf(life) + 1
  const history = (what: string, rows: number, filter: object = {}, place: object = page): Bounded => {
    return { what: `the history ${what}`, rows, asked: call('hitl', 'history', place, filter) }
  }
  const audit = (what: string, rows: number, filter: object = {}, place: object = page): Bounded => {
    return { what: `the trail ${what}`, rows, asked: call('audit', 'list', place, filter) }
  }
  return [
    { what: 'a page of what waits', rows: 250, asked: call('hitl', 'pending', now, { limit: 100 }) },
    {
      what: 'the last page of what waits',
      rows: 250,
      asked: call('hitl', 'pending', now, { limit: 100, after: { createdAt: begin + life.waiting - 100, id: '' } }),
    },
    { what: 'a page of the grants', rows: 250, asked: call('grants', 'list', now, { limit: 100 }) },
    history('of all', looked),
    history('of an agent', looked, { agentId: 'agent 1' }),
    history('of an agent that has none', 10, { agentId: 'nobody' }),
    history('of failures', looked, { replay: 'failed' }),
    history('of one status', looked, { statuses: ['Denied'] }),
    history('of a rule that held nothing', looked, { rule: 'none' }),
    history('of an agent and a host', looked, { agentId: 'agent 1', host: 'none', statuses: ['Approved'] }),
    history('from the middle on', looked, {}, { ...page, before: { decidedAt: begin + life.past / 2, id: '' } }),
    { what: 'how requests ended', rows: looked, asked: call('hitl', 'ends', begin) },
    audit('of all', looked),
    audit('of an action', looked, { action: 'hitl.approve' }),
    audit('of an action that nobody did', 10, { action: 'none' }),
    audit('of an actor and another action', looked, { actor: 'gateway', action: 'none' }),
    audit('of a subject', 50, { subject: 'past 7' }),
    audit('of an actor, long ago', 100, { actor: 'gateway', from: begin + 10, to: begin + 20 }),
    audit('of a time', 400, { from: begin + 100, to: begin + 200 }),
    audit('from the middle on', looked, {}, { ...page, before: life.past / 2 }),
  ]
}
