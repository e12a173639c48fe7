/** Models that were called without a price. */
import { parseTarget } from '../base/target.ts'
import { openPrices } from '../gateway/prices.ts'
import { createProviders } from '../llm/providers.ts'
import type { CostOf } from '../pipeline/answers/pricing.ts'
import { systemClock } from '../runtime/clock.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { openLines, parseLine, type RequestLine } from './log-lines.ts'
import { type Command, jsonHelp, jsonOption, misused, printResult, readArgs } from './shell.ts'
import { tableLines } from './table.ts'

const options = { ...configOption, ...jsonOption } as const

export const checking: Command = {
  help: `usage: agent-gateway prices check LOG [--json] [--config FILE]

Prints the models that a log has calls of, and that have no price with the configuration as it is now: those whose cost is
not counted, and those that a budget of money refuses (price_unknown). Give them one in Prices or Metering:PricesFile. The gateway
writes such a log with Logging:Access. Exit code 1: there are some.

${jsonHelp}: ok, models
${configHelp}

Example:
  agent-gateway prices check access.log`,
  async run(shell) {
    const { values, positionals } = readArgs(shell, options, 1)
    const [log = misused('name a log')] = positionals
    const { config, baseDirectory } = readConfiguration(shell, values.config)
    const prices = await openPrices({ ...config, Metering: { ...config.Metering, Usage: true } }, baseDirectory)
    if (prices === undefined) throw new Error('cannot happen: calls are metered, and there are no prices')
    const isPriced = createIsPriced(prices.costOf, config.Metering.Hosts)
    const found = new Map<string, UnpricedModel>()
    for await (const text of await openLines(log)) {
      const line = parseLine(text)
      if (line !== undefined && isModelLine(line) && !isPriced(line)) count(line, found)
    }
    const models = [...found.values()].sort((one, other) => other.calls - one.calls)
    const rows = models.map(({ calls, origin, model }) => [String(calls), origin, model])
    const ok = models.length === 0
    const lines = ok
      ? ['all models that were called have a price']
      : tableLines([['CALLS', 'ORIGIN', 'MODEL'], ...rows])
    return printResult(shell, values, { ok, models }, lines)
  },
}

interface UnpricedModel {
  readonly origin: string
  readonly model: string
  calls: number
}

type ModelLine = RequestLine & { readonly origin: string; readonly model: string }

/** A line of a call of a model whose cost is not known. */
const isModelLine = (line: RequestLine): line is ModelLine =>
  typeof line.origin === 'string' && typeof line.model === 'string' && line.cost === undefined

const aToken = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }

/** What is at no provider was not metered. */
function createIsPriced(costOf: CostOf, hosts: readonly string[]): (line: ModelLine) => boolean {
  const providerAt = createProviders(hosts)
  return ({ origin, model }) => {
    const target = parseTarget(`${origin}/`)
    const provider = typeof target === 'string' ? undefined : providerAt(target.origin)
    if (typeof target === 'string' || provider === undefined) return true
    return costOf({ origin: target.origin, provider, model, tokens: aToken }, systemClock.now()) !== undefined
  }
}

function count({ origin, model }: ModelLine, found: Map<string, UnpricedModel>): void {
  const key = `${origin} ${model}`
  const known = found.get(key) ?? { origin, model, calls: 0 }
  known.calls++
  found.set(key, known)
}
