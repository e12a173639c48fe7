/**
 * Grants, against approval fatigue: with an approval, or after it, a reviewer lets the next requests of the same agent, rule, method,
 * origin, path and credentials pass without asking. A grant replaces the review of a rule, or of the default of a policy, that asks for
 * one reviewer: never a Deny, never a risk above the threshold.
 */
import { randomUUID } from 'node:crypto'
import { readingsOf } from '../base/readings.ts'
import { type FieldError, type Refusal, refuse } from '../base/refusals.ts'
import { overridesMethod } from '../http/method-override.ts'
import {
  type AuditEntry,
  type GrantFilter,
  type GrantRecord,
  type HitlBrief,
  orUnavailable,
  type TakenKey,
} from '../storage/store.ts'
import {
  type GrantTerms,
  type HitlOptions,
  maxIdempotencyKey,
  type Person,
  type Suspension,
  type Verdict,
  verdictEntry,
} from './model.ts'
import { shortUrl } from './short-url.ts'
import { keyUsed } from './suspend.ts'
import { parseDecision } from './view.ts'

const maxMinutes = 480
const maxUses = 1_000
const maxPath = 2_048

/** A grant that let a request pass, and the idempotency key that the request has. */
export interface UsedGrant {
  readonly grant: GrantRecord
  readonly key: TakenKey | undefined
}

/** What a request has used that begins again: the grant unless it was withdrawn, and the use of it unless the request was sent. */
interface EarlierUse {
  readonly grant?: GrantRecord | undefined
  readonly unsent?: UsedGrant | undefined
}

export type Grants = ReturnType<typeof createGrants>

/** Terms, and the id when it is known. */
export interface NewGrant extends GrantTerms {
  readonly id?: string
}

type GrantOptions = Pick<HitlOptions, 'clock' | 'settings'> & {
  readonly store: Pick<HitlOptions['store'], 'grants'>
}

export function createGrants(options: GrantOptions) {
  const { store, clock } = options
  const giveBack = giveBackTo(options)
  return {
    /** Whether a grant covers a request that would be held. Its use may fail nevertheless: others use it, or it runs out. */
    covers: (held: Suspension, before?: GrantRecord) =>
      orUnavailable(
        isCovered(held, before, clock.now())
          ? Promise.resolve(true)
          : covering(options, held).then(({ length }) => length > 0),
      ),
    /**
     * Uses one grant for a request that would be held; undefined when none covers it. `already_exists` when
     * a grant let a request with its key pass. `store_unavailable` when the use cannot be recorded: then it must not pass.
     *
     * @param before stands for a use while its grant covers the request; otherwise what was not sent is given back
     */
    use: (held: Suspension, before: EarlierUse = {}) => orUnavailable(use({ ...options, giveBack }, held, before)),
    /** Gives back the use of a grant, and its key, by a request that was not sent. */
    giveBack: (used: UsedGrant, requestId: string | null) => orUnavailable(giveBack(used, requestId)),
    /** Active ones, oldest first. */
    list: (filter?: GrantFilter) => store.grants.list(clock.now(), filter),
    /** `not_found` when no grant has that id. */
    revoke: (id: string, { reviewer, requestId }: { readonly reviewer: Person; readonly requestId: string | null }) => {
      const done = { actor: reviewer.id, requestId, action: 'hitl.grant.revoke', subject: id, details: {} }
      const removed = store.grants.remove(id, { at: clock.now(), ...done })
      return orUnavailable(removed.then(done => (done ? undefined : refuse('not_found'))))
    },
  }
}

/**
 * Undefined also when the key already names a held request: the queue answers with that one. A key that a grant used is
 * refused here: if it is freed now, the queue would hold a request that a grant covers.
 */
async function use(
  options: GrantOptions & { readonly giveBack: GiveBackUse },
  held: Suspension,
  before: EarlierUse,
): Promise<UsedGrant | Refusal | undefined> {
  const { store, clock, settings } = options
  const { idempotencyKey: key, agent } = held
  if (isCovered(held, before.grant, clock.now())) return { grant: before.grant, key: before.unsent?.key }
  if (before.unsent !== undefined) await options.giveBack(before.unsent, held.requestId)
  const grants = await covering(options, held)
  const now = clock.now()
  const expiresAt = now + settings.RetentionSeconds * 1_000
  const taken = key === undefined ? undefined : { agentId: agent.id, key, expiresAt }
  for (const grant of grants) {
    const used = await store.grants.use(grant.id, { now, key: taken }, useEntry(now, grant, held))
    if (used === 'keyHeld') return undefined
    if (used === 'keyUsed') return keyUsed()
    if (used !== undefined) return { grant: used, key: taken }
  }
  return undefined
}

type GiveBackUse = (use: UsedGrant, requestId: string | null) => Promise<undefined>

/** Uses of one grant that a gateway gives back at most: an agent can leave again and again, and each time the audit trail grows. */
const maxGivenBack = 20

/** Keys are freed always. */
function giveBackTo({ store, clock }: GrantOptions): GiveBackUse {
  const given = new Map<string, { times: number; readonly expiresAt: number }>()
  return async ({ grant: { id, agentId, expiresAt }, key }, requestId) => {
    const at = clock.now()
    for (const [other, ended] of given) if (ended.expiresAt <= at) given.delete(other)
    const of = given.get(id) ?? { times: 0, expiresAt }
    if (of.times < maxGivenBack) {
      given.set(id, of)
      of.times += 1
      const entry = { at, actor: agentId, requestId, action: 'hitl.grant.giveBack', subject: id, details: {} }
      await store.grants.giveBack(id, key, entry)
    } else if (key !== undefined) await store.grants.releaseKey(key)
  }
}

async function covering({ store, clock }: GrantOptions, held: Suspension): Promise<readonly GrantRecord[]> {
  if (!mayPass(held)) return []
  const active = await store.grants.active(clock.now(), held.agent.id)
  return active.filter(grant => isFor(grant, held))
}

/** Whether a grant that has let the request pass still does. */
const isCovered = (held: Suspension, grant: GrantRecord | undefined, now: number): grant is GrantRecord =>
  grant !== undefined && grant.expiresAt > now && mayPass(held) && isFor(grant, held)

function mayPass({ request, decision, idempotencyKey: key = '' }: Suspension): boolean {
  if (!isGrantable(decision) || key.length > maxIdempotencyKey) return false
  // The method of a grant would be another one than that which is carried out.
  if (overridesMethod(locationOf(request.url).query, request.rawHeaders)) return false
  return decision.risk === null || decision.risk.score <= decision.risk.threshold
}

function isFor(grant: GrantRecord, { request, facts, decision, agent }: Suspension): boolean {
  const { origin, path } = locationOf(request.url)
  return (
    grant.agentId === agent.id &&
    grant.policyName === decision.policy &&
    grant.rule === (decision.rule ?? '') &&
    grant.method === request.method &&
    grant.origin === origin &&
    // With others it would act for somebody else.
    grant.credentials === (facts.credentials ?? '') &&
    matchesPath(grant.path, path)
  )
}

function useEntry(now: number, grant: GrantRecord, { request, agent, requestId }: Suspension): AuditEntry {
  const { hitlId, grantedBy, rule } = grant
  return {
    at: now,
    actor: agent.id,
    requestId,
    action: 'hitl.grant.use',
    subject: grant.id,
    details: {
      ...{ method: request.method, origin: grant.origin, path: shortUrl(locationOf(request.url).path) },
      ...{ hitlId, grantedBy, rule },
    },
  }
}

/** Grants cover decisions of policies only: a policy decides the same request the same way the next time. */
const grantable = new Set(['rule', 'global', 'default'])

function isGrantable(decision: { source: string; policy: unknown; approvals: number }): boolean {
  return grantable.has(decision.source) && decision.policy !== null && decision.approvals <= 1
}

/**
 * Why these terms cannot be granted for this item; undefined when they can.
 * @param at where the body has the terms: before the names of the members in errors
 */
export function grantProblem(item: HitlBrief, terms: GrantTerms, at: 'grant.' | ''): Refusal | undefined {
  if (!isGrantable(JSON.parse(item.decision))) {
    return refuse(
      'wrong_state',
      'Only what a rule, or the default of a policy, holds for one reviewer can be granted for the future.',
    )
  }
  const errors: FieldError[] = []
  if (!isCount(terms.minutes, maxMinutes))
    errors.push({ field: `${at}minutes`, message: `must be an integer from 1 to ${maxMinutes}` })
  if (!isCount(terms.maxUses, maxUses))
    errors.push({ field: `${at}maxUses`, message: `must be an integer from 1 to ${maxUses}` })
  if (terms.path !== undefined && !coversPath(item, terms.path)) {
    errors.push({ field: `${at}path`, message: 'must be a path pattern that covers the approved request' })
  } else if (terms.path === undefined && wildcard.test(locationOf(item.url).path)) {
    errors.push({ field: `${at}path`, message: 'is needed: the path of the request is itself a pattern of others' })
  }
  return errors.length === 0 ? undefined : refuse('invalid_body', undefined, { errors })
}

/** The grant of an approval, given with it or later, with its audit entry. Without an id it gets one. */
export function makeGrant(now: number, item: HitlBrief, verdict: Verdict, { id, ...terms }: NewGrant) {
  const { origin, path } = locationOf(item.url)
  const grant: GrantRecord = {
    id: id ?? randomUUID(),
    agentId: item.agentId,
    policyName: item.policyName ?? '',
    rule: item.rule ?? '',
    method: item.method,
    origin,
    path: terms.path ?? path,
    credentials: credentialsOf(item),
    maxUses: terms.maxUses,
    uses: 0,
    hitlId: item.id,
    grantedBy: verdict.reviewer.id,
    createdAt: now,
    expiresAt: now + terms.minutes * 60_000,
  }
  const entry = verdictEntry(now, verdict, { action: 'hitl.grant', item, grant })
  return { grant, entry: { ...entry, subject: grant.id } }
}

/** A grant of a request that does not say what it had covers requests without any. */
const credentialsOf = (item: HitlBrief): string => parseDecision(item).credentials ?? ''

/** An agent chooses the path that it sends: it must not choose what a grant covers. */
const wildcard = /\/\*{1,2}(?:\/|$)/

function isCount(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= max
}

function coversPath(item: HitlBrief, pattern: string): boolean {
  const last = pattern.indexOf('**')
  const wellFormed = pattern.startsWith('/') && pattern.length <= maxPath && (last < 0 || last === pattern.length - 2)
  return wellFormed && matchesPath(pattern, locationOf(item.url).path)
}

/** Origin, raw path and query of an absolute URL, as text: nothing is decoded or repaired. */
export function locationOf(url: string): { origin: string; path: string; query: string } {
  const authority = url.indexOf('://') + 3
  const end = url.slice(authority).search(/[/?#]/)
  const start = end < 0 ? url.length : authority + end
  const rest = url.slice(start)
  const path = rest.split(/[?#]/, 1)[0] ?? ''
  return { origin: url.slice(0, start), path: path || '/', query: rest.slice(path.length + 1) }
}

/**
 * `*` is one segment, `**` at the end is one or more; everything else is literal. A server may read `%2F` in a segment as two
 * segments, so each reading of the path must match a pattern.
 */
export function matchesPath(pattern: string, path: string): boolean {
  if (!pattern.includes('*')) return pattern === path
  const readings = readingsOf(path) ?? [path]
  return typeof readings !== 'string' && readings.every(reading => matchesReading(pattern, reading))
}

function matchesReading(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  const open = wanted.at(-1) === '**'
  if (open) wanted.pop()
  if (open ? given.length <= wanted.length : given.length !== wanted.length) return false
  return wanted.every((segment, index) => segment === given[index] || (segment === '*' && given[index] !== ''))
}
