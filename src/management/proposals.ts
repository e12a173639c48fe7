import { isRefusal, type Refusal, refuseField } from '../base/refusals.ts'
import type { Reply } from '../http/respond.ts'
import type { MadePolicy } from '../policies/propose.ts'
import type { AgentRecord } from '../storage/store.ts'
import { bodyOf, type Handlers, replyOf, timeOrNull, timeText } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** As openapi.json describes it. */
interface ProposalOrder {
  readonly agentIds: readonly string[]
  readonly mode?: 'learn' | 'narrow'
  readonly policy?: string
  readonly name?: string
  readonly since?: string
  readonly until?: string
  readonly exact?: boolean
  readonly promote?: boolean
  readonly unseen?: 'Hitl' | 'Deny'
}

/** Policies from what was recorded. Nothing is put in force. */
export function proposalHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { registry, book, recording, policyWork, language, clock } = parts
  return {
    async proposePolicy(call): Promise<Reply | Refusal> {
      const order = bodyOf<ProposalOrder>(call)
      const agents = order.agentIds.map(id => registry.get(id)).filter(agent => agent !== undefined)
      if (agents.length < order.agentIds.length) return refuseField('agentIds', 'must be ids of agents')
      const before = toNarrow(order, agents, book)
      if (isRefusal(before)) return before
      const shapes = await Promise.all([...new Set(agents)].map(({ id }) => recording.of(id)))
      const terms = {
        name: order.name ?? 'proposed',
        since: timeOf(order.since, 0),
        until: timeOf(order.until, clock.now() + 1),
        isExact: order.exact === true,
        promotes: order.promote === true,
        unseen: order.unseen ?? 'Hitl',
      }
      const made = await policyWork.run(thread => thread.call('propose', [shapes, terms, language, before]), call.left)
      return replyOf(made, all => ({ ...shown(all), ...gapOf(shapes) }))
    },
  }
}

export const timeOf = (text: string | undefined, other: number): number =>
  text === undefined ? other : Date.parse(text)

/** The policy that is narrowed: the named one, or that of all agents; undefined when a new one is learned. */
function toNarrow(
  { mode, policy }: ProposalOrder,
  agents: readonly AgentRecord[],
  book: ManagementParts['book'],
): object | undefined | Refusal {
  if (mode === 'learn') return undefined
  const names = new Set(policy === undefined ? agents.map(({ policyName }) => policyName) : [policy])
  const [name = null] = names
  if (names.size > 1 && mode === undefined) return undefined
  if (names.size > 1) return refuseField('policy', 'must be given: the agents have different policies')
  const found = name === null ? undefined : book.entry(name)?.document
  if (found === undefined && mode === 'narrow') return refuseField('policy', 'must be the name of a policy')
  return found
}

/** Since when something of the recordings is missing. */
export function gapOf(recorded: readonly { readonly incompleteSince: number | null }[]) {
  const gaps = recorded.flatMap(({ incompleteSince }) => incompleteSince ?? [])
  const least = gaps.reduce((one, other) => Math.min(one, other), Infinity)
  return { incompleteSince: timeOrNull(gaps.length === 0 ? null : least) }
}

function shown({ proposal, yaml, tests, used, allowed, held, leftOut, warnings }: MadePolicy) {
  const { document, made, hosts } = proposal
  const evidence = [...made].map(([rule, { evidence: found, agents, cause }]) => {
    const { count, days, first, last, approved } = found
    const times = { firstAt: timeText(first), lastAt: timeText(last) }
    return { rule, count, days, ...times, approved, agents, cause }
  })
  return {
    ...{ policy: document, yaml, tests, evidence, hosts, used, allowed, held, leftOut },
    warnings: warnings.map(({ code, path, message }) => ({ code, path, message })),
  }
}
