/**
 * Sends approved requests: one attempt, one recorded outcome. If the process ends in between, the item is still correct:
 * `inFlight` under a lease, `unknown` when the lease ran out. Nothing is sent again automatically.
 */
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Refusal, refuse } from '../base/refusals.ts'
import { fieldValues } from '../http/headers.ts'
import { isOwnField } from '../http/names.ts'
import type { HitlBrief, ReplayOutcome } from '../storage/store.ts'
import type { AttemptLease } from './attempts.ts'
import { makeGrant } from './grants.ts'
import {
  type Approval,
  type Approved,
  decided,
  entryDetails,
  type HeldFacts,
  type HeldRequest,
  type HitlOptions,
  type NotSent,
  type ReplayResult,
  verdictEntry,
} from './model.ts'
import { relay } from './relay.ts'
import { digestOf, frameAnswer, openHeld, parseRequest, seal } from './seal.ts'
import { parseDecision } from './view.ts'

/** Pause before an outcome that could not be recorded is tried again, milliseconds. */
const recordAgainMs = 1_000

export interface ReplayAttempt {
  readonly item: HitlBrief
  readonly approval: Approval
  readonly lease: AttemptLease
}

/** The request as it was sealed when it was held. */
export interface OpenedRequest {
  readonly request: HeldRequest
  readonly facts: HeldFacts
}

const cannotOpen =
  'The stored request cannot be opened: it was changed, or the sealing key is another one. It was not sent.'

type AnsweredReplay = Extract<ReplayResult, { kind: 'answered' }>

/** The sealed request, if it is the one that was shown; otherwise the refusal, audited. */
export async function openRequest(
  options: HitlOptions,
  item: HitlBrief,
  approval: Approval,
): Promise<OpenedRequest | Refusal> {
  const sealed = await options.store.hitl.sealed(item.id)
  if (sealed === undefined) {
    // The item was decided after this read.
    const newer = await options.store.hitl.brief(item.id, options.clock.now())
    return newer === undefined ? refuse('not_found') : decided(newer)
  }
  const held = openHeld(options.sealingKeys, item.id, sealed)
  if (held !== undefined && digestOf(held.request) === item.digest) {
    return { request: parseRequest(held.request), facts: held.facts }
  }
  const why = held === undefined ? 'the sealed copy cannot be opened' : 'the digest differs'
  const entry = verdictEntry(options.clock.now(), approval, { action: 'hitl.digestMismatch', item, why })
  await options.store.audit.append(entry)
  return refuse('digest_mismatch', held === undefined ? cannotOpen : undefined)
}

/** The sealed request, for what is recorded of it; undefined when it cannot be opened. */
export async function storedRequest(options: HitlOptions, item: HitlBrief): Promise<HeldRequest | undefined> {
  const sealed = await options.store.hitl.sealed(item.id)
  const held = sealed && openHeld(options.sealingKeys, item.id, sealed)
  return held && parseRequest(held.request)
}

/** Why the agent of a request may not act. The refusal names the request: one of the caller has the same codes. */
export function askerProblem({ agentProblem }: HitlOptions, { id, agentId }: HitlBrief): Refusal | undefined {
  const problem = agentProblem(agentId)
  return problem && { ...problem, detail: `Of the agent that asks: ${problem.detail}`, members: { hitlId: id } }
}

/** Sends a request that this attempt has claimed. */
export async function replay(
  options: HitlOptions,
  attempt: ReplayAttempt,
  opened: OpenedRequest,
): Promise<Approved | Refusal> {
  const { item, approval } = attempt
  const { sendBefore, isLate, abandoned } = attempt.lease
  // Checked again after the claim: a revocation that was acknowledged before the sending must hold.
  const problem = askerProblem(options, item)
  if (problem !== undefined) return await release(options, attempt, problem)
  const context = {
    hitlId: item.id,
    facts: opened.facts,
    agentId: item.agentId,
    trace: parseDecision(item).trace,
    approvals: item.approvedBy.length,
    requestId: approval.requestId,
    ...{ sendBefore, isLate, abandoned },
  }
  const result = await options.send(opened.request, context).catch((error: unknown): ReplayResult => {
    options.report('sending an approved request failed', error)
    return { kind: 'failed', refusal: refuse('upstream_failed') }
  })
  if (result.kind === 'notSent') return await release(options, attempt, result.refusal)
  if (result.kind === 'failed') {
    await recordOrRetry(options, attempt, { replay: 'failed', responseStatus: null, sealedResponse: null })
    return result.refusal
  }
  return await pass(options, attempt, result)
}

/** Nothing was sent: the item is pending again. */
async function release(options: HitlOptions, attempt: ReplayAttempt, why: NotSent): Promise<Refusal> {
  const { item, lease } = attempt
  if (lease.abandoned.aborted) return why
  const action = 'hitl.release'
  const entry = replayEntry(options, attempt, { action, outcome: 'notSent', why: why.refusal, ...why.members })
  const putBack = () => options.store.hitl.release(item.id, item.attempt, entry, why.approvalsNeeded)
  try {
    await putBack()
  } catch (error) {
    options.report('an approved request that was not sent could not be put back', error)
    void recordLater(options, attempt, putBack)
  }
  return why
}

/** Passes the upstream's answer to the reviewer, keeps it for the agent, and records it. */
async function pass(options: HitlOptions, attempt: ReplayAttempt, answer: AnsweredReplay): Promise<Approved> {
  const { item } = attempt
  const body = new PassThrough()
  const { status } = answer
  const rawHeaders = without(answer.rawHeaders, isOwnField)
  const late = attempt.lease.until - (options.settings.LeaseSeconds * 1_000) / 2
  const record = (sealedResponse: Uint8Array | null, replay: ReplayOutcome['replay'] = 'completed') =>
    recordOrRetry(options, attempt, { replay, responseStatus: status, sealedResponse })
  let recorded = false
  const work = relay(answer.body, body, {
    length: Number(fieldValues(rawHeaders, 'content-length')[0] ?? Number.NaN),
    cap: options.settings.MaxStoredResponseBytes,
    isLate: () => options.clock.steady() >= late,
    record: ({ kept }) => {
      recorded = true
      if (kept === undefined) return record(null)
      const frame = frameAnswer({ status, rawHeaders, body: kept, trailers: answer.trailers() })
      return record(seal(options.sealingKeys[0], `response:${item.id}`, frame.bytes))
    },
  })
  // An answer that broke off is recorded as failed, with its status.
  void attempt.lease.during(work.catch(() => (recorded ? undefined : record(null, 'failed'))))
  const ours = ['Gateway-Hitl-Id', item.id, 'Gateway-Hitl-Digest', item.digest]
  const granted = await grant(options, attempt)
  if (granted !== undefined) ours.push('Gateway-Hitl-Grant', granted)
  // The answer to HEAD, and 304, state the length of a body that is not sent. The reviewer's request is not HEAD.
  const bodiless = item.method === 'HEAD' || status === 304
  const shown = bodiless ? without(rawHeaders, name => name === 'content-length') : rawHeaders
  return { kind: 'answered', status, rawHeaders: [...shown, ...ours], body }
}

/** @param drop called with the lower-case name */
function without(rawHeaders: readonly string[], drop: (name: string) => boolean): string[] {
  return rawHeaders.filter((_, index) => !drop(rawHeaders[index - (index % 2)]!.toLowerCase()))
}

/**
 * Stores the grant of the approval after the request was sent. If the grant cannot be stored, it does not exist: the answer
 * has no grant id.
 */
async function grant(options: HitlOptions, { item, approval }: ReplayAttempt): Promise<string | undefined> {
  if (approval.grant === undefined) return undefined
  const { grant, entry } = makeGrant(options.clock.now(), item, approval, approval.grant)
  try {
    await options.store.grants.insert(grant, entry)
    return grant.id
  } catch (error) {
    options.report('a grant could not be stored', error)
    return undefined
  }
}

/** Records the outcome, or retries in the background when the store fails. */
async function recordOrRetry(options: HitlOptions, attempt: ReplayAttempt, outcome: ReplayOutcome): Promise<void> {
  // The attempt failed because the gateway stops; it is recorded as unknown.
  if (attempt.lease.abandoned.aborted) return
  try {
    await recordOutcome(options, attempt, outcome)
  } catch (error) {
    options.report('the outcome of an approved request could not be recorded', error)
    void recordLater(options, attempt, () => recordOutcome(options, attempt, outcome))
  }
}

async function recordOutcome(options: HitlOptions, attempt: ReplayAttempt, outcome: ReplayOutcome): Promise<void> {
  const { item } = attempt
  const { replay, responseStatus } = outcome
  const entry = replayEntry(options, attempt, { action: 'hitl.replay', outcome: replay, responseStatus })
  const isRecorded = await options.store.hitl.recordOutcome(item.id, item.attempt, outcome, entry)
  if (isRecorded && replay === 'completed') options.noteVerdict(item.agentId, 'humanApproval')
}

/** An outcome that cannot be recorded while the lease lasts stays unknown. */
async function recordLater(
  { clock }: HitlOptions,
  { lease: { until, abandoned } }: ReplayAttempt,
  record: () => Promise<unknown>,
): Promise<void> {
  for (let isRecorded = false; !isRecorded; ) {
    await sleep(recordAgainMs, undefined, { ref: false })
    if (clock.steady() >= until || abandoned.aborted) return
    isRecorded = await record().then(
      () => true,
      () => false,
    )
  }
}

function replayEntry(
  options: HitlOptions,
  { item, approval }: ReplayAttempt,
  done: { readonly action: string } & Readonly<Record<string, unknown>>,
) {
  const { action, ...details } = done
  return {
    at: options.clock.now(),
    actor: 'gateway',
    requestId: approval.requestId,
    action,
    subject: item.id,
    details: { ...entryDetails(item), attempt: item.attempt, ...details },
  }
}
