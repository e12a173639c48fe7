import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { readsUsage } from '../config/budgets.ts'
import type { Config } from '../config/schema.ts'
import type { PriceData } from '../llm/price-data.ts'
import { mergePrices, readPriceFile } from '../llm/price-file.ts'
import { createHighestPrices, createPrices } from '../llm/prices.ts'
import { createPricing, type Pricing } from '../pipeline/answers/pricing.ts'

const builtInFile = new URL('../../prices.json', import.meta.url)

/** What calls of models cost. */
export interface Prices extends Pricing {
  /**
   * Reads Metering:PricesFile again. Rejects when it cannot be read; then the old prices stay.
   *
   * @throws StartupError
   */
  reload(): Promise<void>
}

/**
 * Reads the prices; undefined when calls are not metered.
 *
 * @throws StartupError when Metering:PricesFile has none
 */
export async function openPrices(config: Config, baseDirectory: string): Promise<Prices | undefined> {
  const { Usage, PricesFile } = config.Metering
  if (!Usage && !readsUsage(config)) return undefined
  const builtIn: Pick<PriceData, 'providers'> = JSON.parse(await readFile(builtInFile, 'utf8'))
  const path = PricesFile === undefined ? undefined : resolve(baseDirectory, PricesFile)
  const read = async () => {
    const own = path === undefined ? {} : await readPrices(path)
    const data = { providers: mergePrices(own, builtIn.providers) }
    return createPricing(config, { priceOf: createPrices(data), highestOf: createHighestPrices(data) })
  }
  let pricing = await read()
  return {
    costOf: (call, now) => pricing.costOf(call, now),
    chargeOf: (call, now) => pricing.chargeOf(call, now),
    async reload() {
      if (path !== undefined) pricing = await read()
    },
  }
}

async function readPrices(path: string): Promise<PriceData['providers']> {
  const found = readPriceFile(await readJson(path))
  if (found !== undefined) return found
  throw new StartupError(
    `Metering:PricesFile: ${path} has no price of a known provider, as genai-prices or LiteLLM write it.`,
  )
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    const { code } = asError(error)
    const problem = code === undefined ? 'is no JSON' : `cannot be read (${code})`
    throw new StartupError(`Metering:PricesFile: ${path} ${problem}.`)
  }
}
