import { escapeDeceptive } from '../base/deceptive.ts'
import { refuse } from '../base/refusals.ts'
import { noBudget, type RaiseTerms } from '../budgets/raises.ts'
import type { HolderView } from '../budgets/view.ts'
import { jsonReply } from '../http/respond.ts'
import { bodyOf, type Handlers, replyOf } from './call.ts'
import { createOnce } from './idempotency.ts'
import { readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** Budgets: what was spent of them, and raises. */
export function budgetHandlers({ budgets, registry, store }: ManagementParts): Handlers['guarded'] {
  const named = (view: HolderView) => {
    const agent = view.of === 'Agent' ? registry.get(view.holder) : undefined
    const holderName = agent === undefined ? null : escapeDeceptive(agent.name)
    return { ...view, holderName, holderOwner: agent?.ownerId ?? null }
  }
  return {
    async listBudgets() {
      return jsonReply(200, await budgets.all())
    },
    async getBudget(call) {
      const page = readPage(call)
      const found = await budgets.holders(call.named, page)
      if (found === undefined) return refuse('not_found', noBudget(call.named))
      const { budget, items, totalCount } = found
      return jsonReply(200, { budget, items: items.map(named), ...page, totalCount })
    },
    raiseBudget(call) {
      const { holder, amount, comment } = bodyOf<Pick<RaiseTerms, 'holder' | 'amount' | 'comment'>>(call)
      return createOnce(store, call, {
        within: ['raiseBudget', call.named],
        noted: () => ({ subject: call.named, action: 'budget.raise' }),
        idIn: 'raiseId',
        onRepeat: 'The raise counts once: GET /budgets/{name} shows the sum of all raises.',
        async create({ id }) {
          const by = { agent: call.caller.agent, requestId: call.requestId }
          return replyOf(await budgets.raise(call.named, { id, holder, amount, comment }, by), named, 201)
        },
      })
    },
    async listAgentBudgets({ named: id, caller }) {
      const agent = registry.get(id)
      if (agent === undefined || (caller.selfOnly && agent.id !== caller.agent.id)) return refuse('not_found')
      const views = (await budgets.ofAgent(agent)).map(named)
      return jsonReply(200, caller.selfOnly ? views.map(ownOnly) : views)
    },
  }
}

/** An agent sees no amounts of a budget that others share. */
function ownOnly<V extends HolderView>(view: V) {
  if (view.of === 'Agent') return view
  const { budget, holder, of, unit, currency, from, resetsAt } = view
  return { budget, holder, holderName: null, holderOwner: null, of, unit, currency, from, resetsAt }
}
