/**
 * The queue of held requests, as the proxy pipeline and the management API use it (spec 3.2, 4.5).
 */
import type { Refusal } from '../base/refusals.ts'
import { isPrivileged } from '../storage/agents.ts'
import {
  type CallerKind,
  type GrantRecord,
  type HitlBrief,
  type HitlFilter,
  type HitlItem,
  type HitlPastFilter,
  type HitlPastQuery,
  type Looked,
  orUnavailable,
  type PastCursor,
} from '../storage/store.ts'
import { createAttempts, type ReplayAttempts } from './attempts.ts'
import { type Calls, createCalls, type HeldCallOptions } from './calls.ts'
import type { Approval, Approved, HitlOptions, Person, StoredAnswer, Suspended, Suspension, Verdict } from './model.ts'
import { parseAnswer, unseal } from './seal.ts'
import { decideSeveral, type ItemOutcome, type SeveralVerdicts } from './several.ts'
import { keyUsed, suspend } from './suspend.ts'
import { giveUp, sweep } from './sweep.ts'
import { approve, deny, extend, grantLater, leave, type Withdrawal, withdraw } from './verdict.ts'
import { type VerdictNumbers, verdictsWithin } from './verdict-numbers.ts'
import { type DetailView, detailView, lineText, pastView } from './view.ts'
import { createWaiters, isUndecided } from './wait.ts'

/** How the body is shown: its text with escapes, or its bytes in base64. */
export interface BodyForm {
  readonly exact?: boolean
}

/** Reads reject with a StoreError when the store fails; verdicts and suspensions answer `store_unavailable`. */
export interface Queue {
  /** Stores the request before it resolves. Refusals: hitl_queue_full, hitl_storage_full, body_too_large, already_exists, ... */
  suspend(held: Suspension): Promise<Suspended | Refusal>
  /** `already_exists` when an idempotency key of the agent names a sending already. */
  checkKey(agentId: string, key: string): Promise<Refusal | undefined>
  /**
   * Pending requests, oldest first, some at a time: each a RequestView of a reviewer, as JSON text. A request that is
   * decided during the reading may be among them.
   */
  pending(filter?: HitlFilter): AsyncGenerator<readonly string[], void, void>
  /** Requests that no longer wait, latest first, for reviewers; until `RetentionSeconds`. */
  history(page: HitlPastQuery, filter?: HitlPastFilter): Promise<Looked<object, PastCursor>>
  /** How requests of the last `ms` ended: the latest 5,000, and since when that is. */
  numbers(ms: number): Promise<VerdictNumbers>
  /** Number of requests that wait, and since when, in milliseconds since the epoch; undefined when none waits. */
  waiting(): Promise<{ readonly count: number; readonly since: number | undefined }>
  /** Undefined when the request does not exist, or this viewer may not see it. */
  get(id: string, viewer: Person, form?: BodyForm): Promise<DetailView | undefined>
  /** The upstream's answer, for the agent that asked; undefined when none is kept. */
  answer(id: string, viewer: Person): Promise<StoredAnswer | undefined>
  /**
   * Resolves when the outcome is on record, after `ms`, or at the abort: with the current item; undefined when it has
   * expired or this viewer may not see it.
   */
  waitForVerdict(
    id: string,
    viewer: Person,
    wait: { readonly ms: number; readonly signal: AbortSignal } & BodyForm,
  ): Promise<DetailView | undefined>
  /** The same for the call that made the request: `calls.ts`. */
  waitAsCall: Calls['wait']
  cancelCall: Calls['cancel']
  /** Sends the request if this approval is the one that counts. */
  approve(id: string, approval: Approval): Promise<Approved | Refusal>
  deny(id: string, verdict: Verdict): Promise<HitlBrief | Refusal>
  /** Refused as a whole when approvals are for more than one group. */
  decideSeveral(verdicts: SeveralVerdicts): Promise<readonly ItemOutcome[] | Refusal>
  /** Gives a pending request more time. */
  extend(id: string, extension: Parameters<typeof extend>[2]): Promise<HitlBrief | Refusal>
  /** Stores a grant from a request that was approved and answered. */
  grantLater(id: string, wanted: Parameters<typeof grantLater>[2]): Promise<GrantRecord | Refusal>
  /** Takes a pending request of the agent back. */
  withdraw(id: string, withdrawal: Withdrawal): Promise<HitlBrief | Refusal>
  /** Expiry, lapsed leases, retention. Call every second or so. */
  sweep(): Promise<void>
  /** Resolves when no replay is under way. */
  idle(): Promise<void>
  /** Marks every replay under way as unknown, and ends it. Returns how many. */
  giveUp(): Promise<number>
}

/** The original body; undefined when it was sealed under another key. */
function openBody(keys: HitlOptions['sealingKeys'], { id, body }: HitlItem): Buffer | undefined {
  return unseal(keys, `body:${id}`, Buffer.from(body, 'base64'))
}

/** The item, if this viewer may see it. */
const visible = <I extends HitlBrief>(item: I | undefined, viewer: Person) =>
  item !== undefined && (item.agentId === viewer.id || isPrivileged(viewer)) ? item : undefined

const callerOf = (viewer: Person): CallerKind => (isPrivileged(viewer) ? 'people' : 'agents')

export function createQueue(options: HitlOptions): Queue {
  const { store, clock, events, sealingKeys, stopping } = options
  const attempts = createAttempts(clock, options.settings.LeaseSeconds * 1_000)
  const read = (id: string, viewer: Person) => store.hitl.get(id, clock.now(), callerOf(viewer))
  const brief = (id: string, viewer: Person) => store.hitl.brief(id, clock.now(), callerOf(viewer))
  const waiters = createWaiters({ events, stopping })
  const show = (item: HitlItem | undefined, viewer: Person, { exact = false }: BodyForm = {}) => {
    const shown = visible(item, viewer)
    return shown && detailView(shown, openBody(sealingKeys, shown), { ...options, viewer, now: clock.now(), exact })
  }
  const waitForVerdict: Queue['waitForVerdict'] = async (id, viewer, { ms, signal, ...form }) => {
    // A waiting call must not keep the body in memory.
    if (visible(await brief(id, viewer), viewer) === undefined) return undefined
    await waiters.wait(id, async () => isUndecided(await brief(id, viewer)), { ms, signal })
    return show(await read(id, viewer), viewer, form)
  }
  const takeBack: Queue['withdraw'] = (id, withdrawal) => orUnavailable(withdraw(options, id, withdrawal))
  const end: HeldCallOptions['leave'] = (id, call) => leave(options, id, call)
  const calls = createCalls({ ...options, waitForVerdict, withdraw: takeBack, leave: end })

  return {
    suspend: held => orUnavailable(suspend(options, held)),
    checkKey: (agentId, key) => {
      const found = store.hitl.keyHolder(agentId, key, clock.now())
      return orUnavailable(found.then(holder => holder && keyUsed(holder.hitlId)))
    },
    pending: filter => listPending(options, filter),
    history: (page, filter) => listPast(options, page, filter),
    numbers: ms => verdictsWithin(options, ms),
    waiting: () => countWaiting(options),
    get: async (id, viewer, form) => show(await read(id, viewer), viewer, form),
    async answer(id, viewer) {
      const item = await read(id, viewer)
      if (item?.agentId !== viewer.id || !item.responseStored) return undefined
      const sealed = await store.hitl.sealedResponse(id)
      const plain = sealed && unseal(sealingKeys, `response:${id}`, sealed)
      return plain && parseAnswer(plain)
    },
    waitForVerdict,
    waitAsCall: calls.wait,
    cancelCall: calls.cancel,
    ...reviewing(options, attempts),
    withdraw: takeBack,
    sweep: () => sweep(options, attempts),
    idle: () => attempts.idle(),
    async giveUp() {
      const count = await giveUp(options, attempts)
      attempts.abort()
      return count
    },
  }
}

type Reviewing = Pick<Queue, 'approve' | 'deny' | 'decideSeveral' | 'extend' | 'grantLater'>

function reviewing(options: HitlOptions, attempts: ReplayAttempts): Reviewing {
  const { store, clock } = options
  const find = (id: string) => store.hitl.brief(id, clock.now())
  const decide: Pick<Queue, 'approve' | 'deny'> = {
    approve: (id, approval) => attempts.follow(orUnavailable(approve(options, id, approval, attempts))),
    deny: (id, verdict) => orUnavailable(deny(options, id, verdict)),
  }
  return {
    ...decide,
    decideSeveral: verdicts => orUnavailable(decideSeveral({ find, ...decide }, verdicts)),
    extend: (id, extension) => orUnavailable(extend(options, id, extension)),
    grantLater: (id, wanted) => orUnavailable(grantLater(options, id, wanted)),
  }
}

/** Items read at a time: reading them delays other calls by a fraction of a millisecond. */
const slice = 100

type ListOptions = Pick<HitlOptions, 'store' | 'clock' | 'agentName'>

async function* listPending(
  { store, clock, agentName }: ListOptions,
  filter: HitlFilter = {},
): AsyncGenerator<readonly string[], void, void> {
  const now = clock.now()
  let left = filter.limit ?? Number.POSITIVE_INFINITY
  const readOn = (after: HitlFilter['after']) => {
    const reading = store.hitl.pending(now, { ...filter, after, limit: Math.min(slice, left) })
    // A reader that stops early never awaits the last read.
    reading.catch(() => {})
    return reading
  }
  for (let reading = readOn(filter.after); ; ) {
    const lines = await reading
    left -= lines.length
    const hasMore = lines.length === slice && left > 0
    // The next ones are read while these are shown.
    if (hasMore) reading = readOn(lines.at(-1))
    yield lines.map(line => lineText(line.summary, line, { now, agentName }))
    if (!hasMore) return
  }
}

async function listPast({ store, clock, agentName }: ListOptions, page: HitlPastQuery, filter?: HitlPastFilter) {
  const { items, totalCount, next } = await store.hitl.history(page, filter)
  return { items: items.map(line => pastView(line, { now: clock.now(), agentName })), totalCount, next }
}

async function countWaiting({ store, clock }: ListOptions) {
  const now = clock.now()
  const [count, since] = await Promise.all([store.hitl.countPending(now), store.hitl.oldestPending(now)])
  return { count, since }
}
