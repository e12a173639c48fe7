/**
 * Held requests as the API shows them (spec 2.3). A reviewer sees why it was held and by which rule; the agent sees
 * its own request, the public reason and the outcome, never the values a rule compared.
 */
import type { HitlBrief, HitlItem } from '../storage/store.ts'
import type { HeldDecision, Person } from './model.ts'
import { escapeDeceptive } from './redact.ts'

const readers = new Set(['reviewer', 'auditor', 'admin'])

/** Who looks, when, and what an agent is called. */
export interface Sight {
  readonly viewer: Person
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly agentName: (agentId: string) => string | undefined
}

/** In the place of a body that was sealed under another key. */
const sealedBody = '[SEALED]'

/** One line of the list. */
export interface RequestView extends Partial<ReviewView> {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly reason: string
  readonly agentId: string
  readonly timestamp: string
  readonly expiresAt: string
  readonly status: string
  readonly bodyBytes: number
  /** SHA-256, hex, over everything that an approval sends. */
  readonly digest: string
}

/** What a reviewer judges by, and the agent does not see. */
export interface ReviewView {
  /** Null when the agent is not in the registry any more. */
  readonly agentName: string | null
  readonly ownerId: string
  readonly host: string
  readonly policyName: string | null
  readonly policyVersion: string | null
  readonly rule: string | null
  readonly matched: readonly unknown[]
  readonly risk: HeldDecision['risk']
  readonly waitedSeconds: number
  readonly approvalsNeeded: number
  readonly approvedBy: readonly string[]
  readonly decidedBy: string | null
}

export interface DetailView extends RequestView {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly bodyEncoding: 'utf8' | 'base64'
  readonly replay: string | null
  readonly attempt: number
  readonly decidedAt: string | null
  readonly comment: string | null
  readonly responseStatus: number | null
  /** Whether `GET /hitl/{id}/response` has the upstream's answer. */
  readonly responseStored: boolean
}

/** Whether this person reads the requests of every agent. */
export function readsAll(viewer: Person): boolean {
  return viewer.roles.some(role => readers.has(role))
}

export function requestView(item: HitlBrief, sight: Sight): RequestView {
  const decision = parseDecision(item)
  const all = readsAll(sight.viewer)
  return {
    id: item.id,
    method: escapeDeceptive(item.method),
    url: escapeDeceptive(item.url),
    reason: escapeDeceptive(all ? item.reason : decision.publicReason),
    agentId: item.agentId,
    timestamp: new Date(item.createdAt).toISOString(),
    expiresAt: new Date(item.expiresAt).toISOString(),
    status: item.status,
    bodyBytes: item.bodyBytes,
    digest: item.digest,
    ...(all ? reviewView(item, decision, sight) : {}),
  }
}

/**
 * Everything, headers and body included.
 *
 * @param body undefined when it cannot be opened
 */
export function detailView(item: HitlItem, body: Buffer | undefined, sight: Sight): DetailView {
  const headers = Object.entries(item.headers).map(([name, value]) => [name, escapeDeceptive(value)])
  return {
    ...requestView(item, sight),
    headers: Object.fromEntries(headers),
    body: body?.toString(item.bodyEncoding) ?? sealedBody,
    bodyEncoding: body === undefined ? 'utf8' : item.bodyEncoding,
    replay: item.replay,
    attempt: item.attempt,
    decidedAt: item.decidedAt === null ? null : new Date(item.decidedAt).toISOString(),
    comment: item.comment?.split('\n').map(escapeDeceptive).join('\n') ?? null,
    responseStatus: item.responseStatus,
    responseStored: item.responseStored,
  }
}

function reviewView(item: HitlBrief, decision: HeldDecision, { now, agentName }: Sight): ReviewView {
  const name = agentName(item.agentId)
  return {
    agentName: name === undefined ? null : escapeDeceptive(name),
    ownerId: escapeDeceptive(item.ownerId),
    host: URL.parse(item.url)?.host ?? '',
    policyName: item.policyName,
    policyVersion: item.policyVersion,
    rule: item.rule,
    matched: decision.matched,
    risk: decision.risk,
    waitedSeconds: Math.max(0, Math.floor(((item.decidedAt ?? now) - item.createdAt) / 1000)),
    approvalsNeeded: item.approvalsNeeded,
    approvedBy: item.approvedBy,
    decidedBy: item.decidedBy,
  }
}

function parseDecision(item: HitlBrief): HeldDecision {
  return JSON.parse(item.decision) as HeldDecision
}
