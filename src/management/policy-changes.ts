import { once } from 'node:events'
import { isRefusal, type Refusal, refuse, refuseField } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { DraftSubject } from '../policies/draft.ts'
import type { PolicyEditor } from '../policies/edit.ts'
import { namedAgents, type RuleEvidence } from '../policies/evidence.ts'
import type { PolicyDocument } from '../policy/language/format.ts'
import type { AgentRecord } from '../storage/store.ts'
import { bodyOf, type Handlers, type ManagementCall, replyOf, timeOrNull } from './call.ts'
import type { ManagementParts } from './parts.ts'
import { gapOf, timeOf } from './proposals.ts'

/** Agents that one call looks at. */
const maxAgents = 50

/** As openapi.json describes it. */
interface SimulationOrder {
  readonly policy: object
  readonly agentIds?: readonly string[]
  readonly since?: string
}

interface DiffOrder {
  /** A document, or the name of a policy in force. */
  readonly before: object | string
  readonly after: object
}

/** What a change of a policy would do, and how a policy and its agents have come apart. Nothing is put in force. */
export function policyChangeHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { registry, book, policyWork, language, clock } = parts

  async function simulate(call: ManagementCall): Promise<Reply | Refusal> {
    const order = bodyOf<SimulationOrder>(call)
    const entry = await book.check(order.policy)
    if (isRefusal(entry)) return entry
    const { document } = entry
    const chosen = order.agentIds?.map(id => registry.get(id)) ?? withPolicy(registry.values(), document.name)
    const agents = chosen.filter(agent => agent !== undefined)
    if (agents.length < chosen.length) return refuseField('agentIds', 'must be ids of agents')
    const looked = agents.slice(0, maxAgents)
    const since = timeOf(order.since, 0)
    const simulated = await Promise.all(looked.map(agent => simulatedOf(agent, since, parts)))
    const tried = simulated.map(({ incompleteSince: _, ...one }) => one)
    const found = await policyWork.run(thread => thread.call('simulate', [tried, document, language]), call.left)
    return replyOf(found, simulation => ({ ...simulation, ...counts(looked, agents), ...gapOf(simulated) }))
  }

  return {
    simulatePolicy: simulate,
    async diffPolicies(call) {
      const { before, after } = bodyOf<DiffOrder>(call)
      const old = typeof before === 'string' ? book.entry(before) : await book.check(before)
      if (old === undefined) return refuseField('before', 'must be the name of a policy')
      if (isRefusal(old)) return old
      const now = await book.check(after)
      if (isRefusal(now)) return now
      const found = await policyWork.run(
        thread => thread.call('compare', [old.document, now.document, language]),
        call.left,
      )
      return replyOf(found)
    },
    async getDrift(call) {
      const entry = book.entry(call.named)
      if (entry === undefined) return refuse('not_found')
      const agents = withPolicy(registry.values(), entry.document.name)
      const looked = agents.slice(0, maxAgents)
      const recorded = await Promise.all(looked.map(({ id }) => parts.recording.of(id)))
      const all = recorded.flatMap(({ shapes }) => shapes)
      const usage = await parts.ruleHits.of(entry.document.name)
      const found = await policyWork.run(
        thread => thread.call('drift', [entry.document, all, usage, clock.now()]),
        call.left,
      )
      if (isRefusal(found)) return found
      const timed = <T extends { readonly lastAt: number | null }>(list: readonly T[]) =>
        list.map(one => ({ ...one, lastAt: timeOrNull(one.lastAt) }))
      const { rules, uncovered, stopped } = found
      return jsonReply(200, {
        ...{ ...found, rules: timed(rules), uncovered: timed(uncovered), stopped: timed(stopped) },
        ...{ ...counts(looked, agents), ...gapOf(recorded) },
      })
    },
  }
}

const withPolicy = (agents: readonly AgentRecord[], name: string): readonly AgentRecord[] =>
  agents.filter(({ policyName }) => policyName === name)

const counts = (looked: readonly unknown[], agents: readonly unknown[]) => ({
  agentsRead: looked.length,
  agentsLeftOut: agents.length - looked.length,
})

/** What is tried on an agent: its facts, what was recorded since then, and its policy. */
async function simulatedOf(agent: AgentRecord, since: number, parts: Recorded) {
  const subject = await subjectOf(agent, since, parts)
  const samples = await parts.recording.samplesOf(agent.id)
  return { ...subject, samples: samples.filter(({ at }) => at >= since) }
}

type Recorded = Pick<ManagementParts, 'recording' | 'book'>

/** The same without whole requests, which are sealed: opening them costs time. */
export async function subjectOf(
  { id, name, ownerId, tags, policyName, status, createdAt }: AgentRecord,
  since: number,
  { recording, book }: Recorded,
): Promise<DraftSubject & { readonly incompleteSince: number | null }> {
  const { shapes, incompleteSince } = await recording.of(id)
  return {
    agent: { id, name, ownerId, tags, policyName, status, createdAt },
    shapes: shapes.filter(({ lastAt }) => lastAt >= since),
    before: policyName === null ? undefined : book.entry(policyName)?.document,
    incompleteSince,
  }
}

/** Longest wait of one change for its evidence, milliseconds: others may have asked for long work on policies before. */
const evidenceMs = 10_000

/**
 * By policy, what was recorded of the requests that its new rules match; null: it cannot be told, or not in time. Others name no
 * agent. A policy is saved without it, too.
 */
export async function evidenceOf(
  documents: readonly unknown[],
  call: ManagementCall,
  parts: ManagementParts,
): Promise<NonNullable<PolicyEditor['evidence']>> {
  const found = new Map<string, readonly RuleEvidence[] | null>()
  const late = new AbortController()
  const limit = setTimeout(() => late.abort(), evidenceMs)
  try {
    for (const document of documents) {
      // Most policies are for all of their agents, and are not compiled twice.
      if (!parts.recording.isOn || !JSON.stringify(document).includes('agent.id')) continue
      const entry = await parts.book.check(document)
      if (!isRefusal(entry)) await addEvidence(found, entry.document, AbortSignal.any([call.left, late.signal]), parts)
    }
  } finally {
    clearTimeout(limit)
  }
  return found
}

async function addEvidence(
  found: Map<string, readonly RuleEvidence[] | null>,
  document: PolicyDocument,
  left: AbortSignal,
  parts: ManagementParts,
): Promise<void> {
  const before = parts.book.entry(document.name)?.document
  const agents = namedAgents(document, before).flatMap(id => parts.registry.get(id) ?? [])
  if (agents.length === 0) return
  found.set(document.name, null)
  const subjects = await Promise.all(agents.map(agent => subjectOf(agent, 0, parts)))
  if (left.aborted) return
  const order = [document, before, subjects, parts.language] as const
  const work = parts.policyWork.run(thread => thread.call('evidence', [...order]), left).catch(() => undefined)
  const evidence = await Promise.race([work, once(left, 'abort').then(() => undefined)])
  if (evidence !== undefined && !isRefusal(evidence)) found.set(document.name, evidence)
}
