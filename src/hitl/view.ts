/**
 * Held requests as the API shows them (spec 2.3). A reviewer sees why it was held and by which rule; the agent sees
 * its own request, the public reason and the outcome, never the values a rule compared.
 */

import { escapeDeceptive, escapeDeceptiveIn, escapeLines } from '../base/deceptive.ts'
import { isPrivileged } from '../storage/agents.ts'
import type { EventNote } from '../storage/events.ts'
import type { HitlItem, HitlPast, HitlRecord } from '../storage/store.ts'
import type { BodyFindings } from './findings.ts'
import type { HeldBudget, HeldDecision, HitlOptions, PartDigests, Person, StoredDecision } from './model.ts'

const deciders = new Set(['reviewer', 'admin'])

/** The viewer, the time, and the names of agents. */
export interface Sight {
  readonly viewer: Person
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly agentName: (agentId: string) => string | undefined
}

type Shown = Omit<HitlRecord, 'summary' | 'call'>
type Moving = Pick<HitlItem, 'agentId' | 'createdAt' | 'expiresAt' | 'approvedBy'> & {
  /** Absent: the number has not changed since the request was held. */
  readonly approvalsNeeded?: number
  readonly decidedBy?: string | null
}

/** Shown instead of a body that was sealed under another key. */
const sealedBody = '[SEALED]'
/** Shown instead of the body of a withdrawn request. */
const deletedBody = '[DELETED]'

export interface HeldRequestView
  extends Partial<ReviewView>,
    Pick<HitlItem, 'id' | 'method' | 'url' | 'reason' | 'agentId' | 'status' | 'bodyBytes' | 'digest'> {
  readonly timestamp: string
  readonly expiresAt: string
}

/** Members for reviewers, which the agent does not see. */
export interface ReviewView
  extends Pick<HitlItem, 'ownerId' | 'policyName' | 'rule' | 'approvalsNeeded' | 'approvedBy' | 'decidedBy'>,
    Pick<HeldDecision, 'policyVersion' | 'ruleReason' | 'title' | 'operation' | 'matched' | 'risk'> {
  /** Null when the agent is no longer in the registry. */
  readonly agentName: string | null
  readonly host: string
  readonly digests: PartDigests
  /** The budget at whose limit it waits; absent for other requests. */
  readonly budget?: Omit<HeldBudget, 'until'> & { readonly resetsAt: string }
  /** How often each detector fired in the body; absent when the body was not searched. */
  readonly findings?: BodyFindings['counts']
  readonly waitedSeconds: number
  /** Names of those who approved or decided, by id; empty when they are not in the registry any more. */
  readonly people: Readonly<Record<string, string>>
}

export interface DetailView
  extends HeldRequestView,
    Pick<HitlItem, 'headers' | 'body' | 'bodyEncoding' | 'replay' | 'attempt' | 'comment' | 'responseStatus'> {
  /** For reviewers: names of the header fields that the gateway adds, such as those of credentials. */
  readonly addedFields?: readonly string[]
  /** For reviewers: bytes of the body in which detectors found something; the first 500 of `findings`. */
  readonly findingPlaces?: BodyFindings['places']
  readonly decidedAt: string | null
  /** Whether `GET /hitl/{id}/response` has the upstream's answer. */
  readonly responseStored: boolean
}

export function mayDecide({ roles }: Person): boolean {
  return roles.some(role => deciders.has(role))
}

/** The part of a reviewer's row that is constant until the verdict; made once, when the request is suspended. */
export function summaryView(record: Shown, decision: StoredDecision) {
  // Reviewers may extend it.
  const { expiresAt: _, ...fixed } = requestPart(record, record.reason)
  return {
    ...fixed,
    status: 'Pending',
    ...reasonPart(record, decision),
    decidedBy: null,
  }
}

/** The part that changes. */
function movingView(
  { agentId, createdAt, expiresAt, approvedBy, approvalsNeeded, decidedBy }: Moving,
  { now, agentName }: Omit<Sight, 'viewer'>,
) {
  const name = agentName(agentId)
  const people = decidedBy ? [...approvedBy, decidedBy] : approvedBy
  return {
    expiresAt: new Date(expiresAt).toISOString(),
    agentName: name === undefined ? null : escapeDeceptive(name),
    waitedSeconds: Math.max(0, Math.floor((now - createdAt) / 1000)),
    approvedBy,
    ...(approvalsNeeded === undefined ? {} : { approvalsNeeded }),
    people: Object.fromEntries(people.map(id => [id, escapeDeceptive(agentName(id) ?? '')])),
  }
}

/** A line of a reviewer's list, a RequestView as JSON text. */
export function lineText(summary: string, line: Moving, sight: Omit<Sight, 'viewer'>): string {
  return `${summary.slice(0, -1)},${JSON.stringify(movingView(line, sight)).slice(1)}`
}

/**
 * The data of an event for reviewers: a new request as in the list, and the names of agents.
 *
 * @throws SyntaxError for the event of another version
 */
export function eventData({ type, at, hitlId, data }: EventNote, agentName: Sight['agentName']) {
  const { agentId, by } = data
  if (type === 'pending') {
    const { summary, expiresAt } = data
    const line = { agentId, createdAt: at, expiresAt: Number(expiresAt), approvedBy: [] }
    return JSON.parse(lineText(String(summary), line, { now: at, agentName }))
  }
  if (hitlId === null) return { ...data, agentName: agentName(agentId) ?? null, cause: causeOf(data) }
  return typeof by === 'string' ? { ...data, byName: escapeDeceptive(agentName(by) ?? '') } : data
}

/** For changed tools the cause is made of server and tools. */
function causeOf({ cause, server, tools }: EventNote['data']): string {
  return Array.isArray(tools) ? `${server}: ${tools.join(', ')}` : String(cause)
}

/** A line of the history, a PastView. */
export function pastView(line: HitlPast, sight: Omit<Sight, 'viewer'>) {
  const { status, decidedBy, summary } = line
  const moving = movingView(line, { ...sight, now: line.decidedAt ?? sight.now })
  return { ...JSON.parse(summary), ...moving, status, decidedBy, ...outcomePart(line) }
}

function outcomePart({ replay, attempt, decidedAt, comment, responseStatus }: Omit<HitlPast, 'summary'>) {
  return {
    replay,
    attempt,
    decidedAt: decidedAt === null ? null : new Date(decidedAt).toISOString(),
    comment: comment === null ? null : escapeLines(comment),
    responseStatus,
  }
}

function requestView(item: HitlItem, { viewer, now, agentName }: Sight): HeldRequestView {
  const decision = parseDecision(item)
  const { status, decidedBy } = item
  if (!isPrivileged(viewer)) return { ...requestPart(item, decision.publicReason), status }
  const moving = movingView(item, { now: item.decidedAt ?? now, agentName })
  return { ...requestPart(item, item.reason), status, ...reasonPart(item, decision), ...moving, decidedBy }
}

function requestPart(item: Shown, reason: string) {
  return {
    id: item.id,
    method: escapeDeceptive(item.method),
    url: escapeDeceptive(item.url),
    reason: escapeDeceptive(reason),
    agentId: item.agentId,
    timestamp: new Date(item.createdAt).toISOString(),
    expiresAt: new Date(item.expiresAt).toISOString(),
    bodyBytes: item.bodyBytes,
    digest: item.digest,
  }
}

function reasonPart(item: Shown, decision: StoredDecision) {
  const { ruleReason, title, operation, matched, risk, digests, budget, findings } = decision
  return {
    ownerId: escapeDeceptive(item.ownerId),
    host: URL.parse(item.url)?.host ?? '',
    policyName: item.policyName,
    policyVersion: item.policyVersion,
    rule: item.rule,
    ruleReason: escaped(ruleReason),
    // These contain text of the agent.
    title: escaped(title),
    operation: escaped(operation),
    matched: escapeDeceptiveIn(matched),
    risk: escapeDeceptiveIn(risk),
    approvalsNeeded: item.approvalsNeeded,
    digests,
    ...(budget && { budget: budgetPart(budget) }),
    ...(findings && { findings: findings.counts }),
  }
}

const budgetPart = ({ until, ...budget }: HeldBudget) => ({ ...budget, resetsAt: new Date(until).toISOString() })

const escaped = (text: string | null): string | null => (text === null ? null : escapeDeceptive(text))

export interface DetailSight extends Sight, Pick<HitlOptions, 'addedFields'> {
  /** Whether the body is shown as its bytes, in base64. */
  readonly exact: boolean
}

/**
 * Everything, headers and body included.
 *
 * @param body undefined when it cannot be opened
 */
export function detailView(item: HitlItem, body: Buffer | undefined, sight: DetailSight): DetailView {
  const headers = Object.entries(item.headers).map(([name, value]) => [name, escapeDeceptive(value)])
  const { findings } = parseDecision(item)
  const bodyEncoding = sight.exact ? 'base64' : item.bodyEncoding
  return {
    ...requestView(item, sight),
    headers: Object.fromEntries(headers),
    ...(isPrivileged(sight.viewer) && {
      addedFields: sight.addedFields(item),
      ...(findings && { findingPlaces: JSON.parse(item.places) }),
    }),
    body: body === undefined ? missingBody(item) : shownBody(body, bodyEncoding),
    bodyEncoding: body === undefined ? 'utf8' : bodyEncoding,
    ...outcomePart(item),
    responseStored: item.responseStored,
  }
}

function missingBody({ status }: HitlItem): string {
  return status === 'Withdrawn' ? deletedBody : sealedBody
}

function shownBody(body: Buffer, encoding: 'utf8' | 'base64'): string {
  return encoding === 'base64' ? body.toString('base64') : escapeLines(body.toString())
}

export function parseDecision(item: Pick<HitlItem, 'decision'>): StoredDecision {
  return JSON.parse(item.decision)
}
