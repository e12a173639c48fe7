import { detail, summarise, type Transition } from '../agents/agent.ts'
import type { By } from '../agents/registry.ts'
import { isRefusal, type Refusal, refuse, refuseField } from '../base/refusals.ts'
import type { PolicyBook } from '../policies/book.ts'
import type { AgentRecord, Role } from '../storage/store.ts'
import { bodyOf, done, doneUnlessRefused, type Handlers, type ManagementCall, replyOf, textsOf } from './call.ts'
import { cutPage, pageReply, readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** Operations of spec 4.2 on agents that are registered, and the roles and statuses that go with them. */
export function agentHandlers({ registry, book, clock, credentials }: ManagementParts): Handlers['guarded'] {
  const change = (transition: Transition) => async (call: ManagementCall) =>
    doneUnlessRefused(await registry.transition(call.named, transition, by(call)))

  return {
    listAgents(call) {
      const page = readPage(call)
      const { items, totalCount } = cutPage(matching(registry.values(), textsOf(call)['search']), page)
      return pageReply(page, { items: items.map(agent => summarise(agent, clock.now())), totalCount })
    },
    getAgent(call) {
      return replyOf(registry.get(call.named), agent => detail(agent, clock.now()))
    },
    async deleteAgent(call) {
      const agent = registry.get(call.named)
      const revokeAccounts = agent && (await credentials.beforeRemoval(agent))
      const removed = await registry.remove(call.named, by(call))
      if (!isRefusal(removed)) revokeAccounts?.()
      return doneUnlessRefused(removed)
    },
    async assignPolicy(call) {
      const { policyName } = bodyOf<{ readonly policyName: string | null }>(call)
      if (registry.get(call.named) === undefined) return refuse('not_found')
      return (
        policyProblem(book, policyName) ?? doneUnlessRefused(await registry.setPolicy(call.named, policyName, by(call)))
      )
    },
    async assignRoles(call) {
      const { roles } = bodyOf<{ readonly roles: readonly Role[] }>(call)
      return doneUnlessRefused(await registry.setRoles(call.named, roles, by(call)))
    },
    async assignTags(call) {
      const { tags } = bodyOf<{ readonly tags: Readonly<Record<string, string>> }>(call)
      return doneUnlessRefused(await registry.setTags(call.named, tags, by(call)))
    },
    async liftQuarantine(call) {
      // Spec 3.1 asks for no more than that the agent exists: an active one is as it should be.
      if (registry.get(call.named)?.status === 'Active') return done
      return change('liftQuarantine')(call)
    },
    async rotateSecret(call) {
      return replyOf(await registry.rotateSecret(call.named, by(call)))
    },
    revokeAgent: change('revoke'),
    quarantineAgent: change('quarantine'),
    deactivateAgent: change('deactivate'),
    activateAgent: change('activate'),
  }
}

function matching(agents: readonly AgentRecord[], search: string | undefined): readonly AgentRecord[] {
  if (search === undefined || search === '') return agents
  const wanted = search.toLowerCase()
  return agents.filter(({ id, name, ownerId, policyName, tags }) =>
    [id, name, ownerId, policyName ?? '', ...Object.entries(tags).flat()].some(text =>
      text.toLowerCase().includes(wanted),
    ),
  )
}

/** Why an agent cannot have this policy. */
export function policyProblem(book: Pick<PolicyBook, 'entry'>, name: string | null | undefined): Refusal | undefined {
  if (name === undefined || name === null || book.entry(name) !== undefined) return undefined
  return refuseField('policyName', 'must be the name of a policy')
}

/** The actor that the audit trail names. */
export function by(call: ManagementCall): By {
  return { actor: call.caller.agent.id, requestId: call.requestId }
}
