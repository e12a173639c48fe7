import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { PriceData } from '../llm/price-data.ts'
import { mergePrices, readPriceFile } from '../llm/price-file.ts'
import { createPrices } from '../llm/prices.ts'
import { type CostOf, createCosts } from '../pipeline/answers/pricing.ts'

const builtInFile = new URL('../../prices.json', import.meta.url)

/** What calls of models cost. */
export interface Prices {
  readonly costOf: CostOf
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
  if (!Usage) return undefined
  const builtIn: Pick<PriceData, 'providers'> = JSON.parse(await readFile(builtInFile, 'utf8'))
  const path = PricesFile === undefined ? undefined : resolve(baseDirectory, PricesFile)
  const read = async () => {
    const providers = path === undefined ? {} : await readPrices(path)
    return createCosts(config, createPrices({ providers: mergePrices(providers, builtIn.providers) }))
  }
  let costOf = await read()
  return {
    costOf: (call, now) => costOf(call, now),
    async reload() {
      if (path !== undefined) costOf = await read()
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
