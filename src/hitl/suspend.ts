/**
 * Holding a request: redacted for people, sealed for the wire, both stored before the agent is answered (spec 3.2).
 */
import { isUtf8 } from 'node:buffer'
import { mark, redactText } from '../base/redact.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import { isSecretName } from '../base/secret-names.ts'
import { largestHeld } from '../config/check.ts'
import type { Full, HitlBrief, HitlLimits, HitlRecord } from '../storage/store.ts'
import {
  type HitlOptions,
  maxIdempotencyKey,
  type QueueBound,
  type StoredDecision,
  type Suspended,
  type Suspension,
} from './model.ts'
import { createId } from './random.ts'
import { repeatDigestOf } from './repeat.ts'
import { frameRequest, partDigests, type SealedFrame, seal, sealHeld } from './seal.ts'
import { shortUrl } from './short-url.ts'
import { summaryView } from './view.ts'

/** A retry joins a decided request whose outcome was not delivered for this long, milliseconds. */
const outcomeWaitsMs = 600_000

export function suspend(options: HitlOptions, held: Suspension): Promise<Suspended | Refusal> {
  const problem = problemOf(options, held)
  return problem === undefined ? insert(options, held) : Promise.resolve(problem)
}

function problemOf({ settings, agentProblem }: HitlOptions, held: Suspension): Refusal | undefined {
  // The caller may have waited before this.
  const problem = agentProblem(held.agent.id)
  if (problem !== undefined) return problem
  if (held.request.body.byteLength > settings.MaxStoredBodyBytes) {
    return refuse('body_too_large', 'The body is larger than may be held for review.')
  }
  if ((held.idempotencyKey?.length ?? 0) > maxIdempotencyKey) {
    return refuse('invalid_request', `Idempotency-Key must have at most ${maxIdempotencyKey} characters.`)
  }
  return undefined
}

/** Not an async function: that would keep the request in memory until it is on the disk. */
function insert(options: HitlOptions, held: Suspension): Promise<Suspended | Refusal> {
  const { settings, store, onFull } = options
  const { agent, requestId } = held
  const agentId = agent.id
  const decision = storedDecision(held)
  const frame = frameRequest(held.request)
  const shown = makeRecord(options, { ...held, decision }, frame)
  const record = { ...shown, summary: JSON.stringify(summaryView(shown, decision)) }
  const { id, expiresAt, repeatDigest } = record
  const sealed = sealHeld(options.sealingKeys[0], id, { request: frame, facts: held.facts })
  const storing = store.hitl.insert(record, sealed, limitsOf(record, settings), suspendEntry(record, held))
  return storing.then(stored => {
    if (typeof stored === 'object') return repeated(stored.existing, repeatDigest)
    if (stored === 'keyUsed') return keyUsed()
    if (stored === 'stored') return { id, expiresAt }
    const { bound, refusal } = fullLimits[stored]
    onFull(bound, agentId, requestId)
    return refusal
  })
}

function storedDecision({ request, facts, decision, budget, findings, trace }: Suspension): StoredDecision {
  const counts = findings && { findings: { counts: findings.counts } }
  const digests = partDigests(request)
  const { credentials = '' } = facts
  return { ...decision, digests, credentials, ...(budget && { budget }), ...counts, ...(trace && { trace }) }
}

function makeRecord(options: HitlOptions, held: Suspension, frame: SealedFrame): Omit<HitlRecord, 'summary'> {
  const now = options.clock.now()
  const { request, decision, agent, call = { kind: 'polls' } } = held
  const id = createId(now)
  return {
    id,
    agentId: agent.id,
    ownerId: agent.ownerId,
    method: request.method,
    url: redactText(request.url),
    headers: redactHeaders(request.rawHeaders, options.tokenHeader),
    body: seal(options.sealingKeys[0], `body:${id}`, request.body).toString('base64'),
    places: JSON.stringify(held.findings?.places ?? []),
    bodyEncoding: bodyEncodingOf(request.body),
    bodyBytes: request.body.byteLength,
    reason: decision.reason,
    decision: JSON.stringify(decision),
    policyName: decision.policy,
    policyVersion: decision.policyVersion,
    rule: decision.rule,
    approvalsNeeded: Math.max(1, decision.approvals),
    digest: frame.digest,
    idempotencyKey: held.idempotencyKey ?? null,
    repeatDigest: held.idempotencyKey !== undefined || call.kind !== 'polls' ? repeatDigestOf(request) : null,
    createdAt: now,
    expiresAt: now + options.settings.TimeoutSeconds * 1000,
    call,
  }
}

function limitsOf({ createdAt }: HitlRecord, settings: HitlOptions['settings']): HitlLimits {
  const { MaxPendingRequests: maxPending, MaxStoredBytes: maxBytes, MaxPendingPercentPerAgent } = settings
  const shareOf = (all: number, least: number) => Math.max(least, Math.floor((all * MaxPendingPercentPerAgent) / 100))
  return {
    maxPending,
    maxPendingOfAgent: shareOf(maxPending, 1),
    maxBytes,
    maxBytesOfAgent: shareOf(maxBytes, largestHeld(settings)),
    joinsSince: createdAt - outcomeWaitsMs,
  }
}

function suspendEntry(record: HitlRecord, held: Suspension) {
  return {
    at: record.createdAt,
    actor: record.agentId,
    requestId: held.requestId,
    action: 'hitl.suspend',
    subject: record.id,
    details: {
      method: record.method,
      url: shortUrl(record.url),
      digest: record.digest,
      policy: record.policyName,
      rule: record.rule,
      reason: record.reason,
      expiresAt: new Date(record.expiresAt).toISOString(),
    },
  }
}

const fullLimits: Readonly<Record<Full, { readonly bound: QueueBound; readonly refusal: Refusal }>> = {
  queueFull: { bound: 'hitl_queue', refusal: refuse('hitl_queue_full') },
  agentQueueFull: {
    bound: 'agent_hitl_queue',
    refusal: refuse('hitl_queue_full', 'Too many requests of this agent are waiting for review.'),
  },
  bytesFull: { bound: 'hitl_bytes', refusal: refuse('hitl_storage_full') },
  agentBytesFull: {
    bound: 'agent_hitl_bytes',
    refusal: refuse('hitl_storage_full', 'The requests of this agent take all the storage that it may use.'),
  },
}

/** @param hitlId the held request that has the key; null: a grant let its request pass */
export function keyUsed(hitlId: string | null = null): Refusal {
  if (hitlId === null) return refuse('already_exists', 'This Idempotency-Key was used: a grant let its request pass.')
  const detail = `This Idempotency-Key names a request held for review: see /hitl/status/${hitlId}.`
  return refuse('already_exists', detail, { members: { hitlId } })
}

/** The same request is the same suspension; the same key for another request is a mistake. */
function repeated(existing: HitlBrief, repeatDigest: string | null): Suspended | Refusal {
  const { id, expiresAt } = existing
  if (existing.repeatDigest === repeatDigest) return { id, expiresAt }
  return refuse('already_exists', 'This Idempotency-Key was used for a different request.')
}

/**
 * Header fields for display. Lines of one name are joined by a comma (RFC 9110 section 5.3).
 *
 * @param rawHeaders name, value, name, value
 * @param tokenHeader name of the field that carries agent tokens
 */
export function redactHeaders(rawHeaders: readonly string[], tokenHeader: string): Record<string, string> {
  const fields = new Map<string, string>()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    const secret = isSecretName(rawHeaders[index]!) || name === tokenHeader.toLowerCase()
    const value = secret ? mark : redactText(rawHeaders[index + 1]!)
    const before = fields.get(name)
    fields.set(name, before === undefined || secret ? value : `${before}, ${value}`)
  }
  // fromEntries defines own properties, so a field named __proto__ is harmless.
  return Object.fromEntries(fields)
}

/** Encoding in which a body is shown: text, or base64 when its bytes are not UTF-8. */
export function bodyEncodingOf(bytes: Uint8Array): 'utf8' | 'base64' {
  return isUtf8(bytes) ? 'utf8' : 'base64'
}
