import { escapeDeceptive } from '../base/deceptive.ts'
import { refuse } from '../base/refusals.ts'
import type { HolderView } from '../budgets/view.ts'
import { jsonReply } from '../http/respond.ts'
import type { Handlers } from './call.ts'
import { readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** Budgets: what was spent of them. */
export function budgetHandlers({ budgets, registry }: ManagementParts): Handlers['guarded'] {
  const named = (view: HolderView) => {
    const name = view.of === 'Agent' ? registry.get(view.holder)?.name : undefined
    return { ...view, holderName: name === undefined ? null : escapeDeceptive(name) }
  }
  return {
    async listBudgets() {
      return jsonReply(200, await budgets.all())
    },
    async getBudget(call) {
      const page = readPage(call)
      const found = await budgets.holders(call.named, page)
      if (found === undefined) return refuse('not_found')
      const { budget, items, totalCount } = found
      return jsonReply(200, { budget, items: items.map(named), ...page, totalCount })
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
  return { budget, holder, holderName: null, of, unit, currency, from, resetsAt }
}
