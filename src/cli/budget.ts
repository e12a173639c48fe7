/** Budgets of a running gateway: what is spent, and raises. */
import type { BudgetView, HolderView } from '../budgets/view.ts'
import { askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { type Command, jsonHelp, misused, printResult, readArgs, UsageError } from './shell.ts'
import { tableLines } from './table.ts'

const usual = `  --at ADDRESS   address of a gateway, as printed at start; if absent, the address in the configuration
${jsonHelp}`

export const listing: Command = {
  help: `usage: agent-gateway budget list [--json] [--at ADDRESS] [--config FILE]

Prints the budgets, and what all who have one have spent in the window that is open now.
${gatewayHelp}

${usual}: ok, budgets
${configHelp}

Examples:
  agent-gateway budget list
  agent-gateway budget list --json | jq -r '.budgets[].name'`,
  async run(shell) {
    const { values } = readArgs(shell, gatewayOptions)
    const budgets = await askGateway<readonly BudgetView[]>(shell, askedIn(shell, values), {
      method: 'GET',
      path: '/budgets',
    })
    const head = ['BUDGET', 'OF', 'LIMIT', 'PER', 'SPENT', 'CALLS', 'HOLDERS', 'RESETS']
    return printResult(shell, values, { ok: true, budgets }, tableLines([head, ...budgets.map(budgetRow)]))
  },
}

const budgetRow = (budget: BudgetView): readonly string[] => [
  ...[budget.name, budget.of, amountText(budget.limit, budget), budget.per, amountText(budget.spent, budget)],
  ...[String(budget.calls), String(budget.holders), budget.resetsAt],
]

interface ShownHolder extends HolderView {
  readonly holderName: string | null
}

export const showing: Command = {
  help: `usage: agent-gateway budget show NAME [--json] [--at ADDRESS] [--config FILE]

Prints who has the budget, and what each has spent: the 200 that spent most.
${gatewayHelp}

${usual}: ok, budget, items, totalCount
${configHelp}

Examples:
  agent-gateway budget show agents-daily --json | jq -r '.items[] | select(.spent >= .limit + .raised) | .holder'`,
  async run(shell) {
    const { values, positionals } = readArgs(shell, gatewayOptions, 1)
    const [name = misused('name a budget')] = positionals
    const path = `/budgets/${encodeURIComponent(name)}?pageSize=200`
    const page = await askGateway<{ readonly items: readonly ShownHolder[] }>(shell, askedIn(shell, values), {
      method: 'GET',
      path,
    })
    const head = ['HOLDER', 'NAME', 'SPENT', 'RESERVED', 'LIMIT', 'RAISED', 'CALLS']
    return printResult(shell, values, { ok: true, ...page }, tableLines([head, ...page.items.map(holderRow)]))
  },
}

const holderRow = (one: ShownHolder): readonly string[] => [
  ...[one.holder, one.holderName ?? '-', amountText(one.spent, one), amountText(one.reserved, one)],
  ...[amountText(one.limit, one), amountText(one.raised, one), String(one.calls)],
]

export const raising: Command = {
  help: `usage: agent-gateway budget raise NAME HOLDER AMOUNT [--comment TEXT] [--json] [--at ADDRESS] [--config FILE]

Adds to the limit of one holder (id of an agent, name of an owner or a policy, * of all together), in the window that is
open now alone. The audit trail names the caller.
${gatewayHelp}

  --comment TEXT why, for the audit trail
${usual}: ok, and the state after the raise
${configHelp}

Examples:
  agent-gateway budget raise agents-daily 0b8e8a4e-0f43-4c1b-9d0c-6a1f0a3c2b11 5 --comment "the migration of today"`,
  async run(shell) {
    const { values, positionals } = readArgs(shell, { ...gatewayOptions, comment: { type: 'string' } }, 3)
    const [name, holder, amount] = positionals
    if (name === undefined || holder === undefined || amount === undefined) {
      throw new UsageError('name a budget, a holder and an amount')
    }
    const body = { holder, amount: Number(amount), ...(values.comment !== undefined && { comment: values.comment }) }
    if (!(body.amount > 0)) throw new UsageError('the amount must be a number above 0')
    const path = `/budgets/${encodeURIComponent(name)}/raises`
    const raised = await askGateway<ShownHolder>(shell, askedIn(shell, values), { method: 'POST', path, body })
    const all = amountText((raised.limit ?? 0) + raised.raised, raised)
    const text = `${raised.budget} of ${raised.holderName ?? raised.holder}: ${amountText(raised.spent, raised)} of ${all}`
    return printResult(shell, values, { ok: true, ...raised }, [text])
  },
}

/** An amount with its unit; null: there is no limit. */
function amountText(value: number | null, { unit, currency }: Pick<BudgetView, 'unit' | 'currency'>): string {
  if (value === null) return '-'
  return unit === 'Money' ? `${value.toFixed(2)} ${currency}` : `${Math.round(value)} ${unit.toLowerCase()}`
}
