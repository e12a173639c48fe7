import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { languageOf, missingPolicies } from '../compose/language.ts'
import { type PreparedSet, prepareSet } from '../policies/entry.ts'
import { readFixedPolicies } from '../policies/open.ts'
import type { Configuration } from './configuration.ts'

/** The policies of gateway.yaml and Policy:Directory, with a line for each mistake in them and in what names them. */
export async function readPolicies({ config, baseDirectory }: Configuration): Promise<PreparedSet> {
  const directory = resolve(baseDirectory, config.Policy.Directory)
  const { inputs, lines } = await readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
  const prepared = await prepareSet(languageOf(config), inputs)
  const missing = missingPolicies(config, name => prepared.entries.has(name))
  return { entries: prepared.entries, lines: [...lines, ...prepared.lines, ...missing] }
}
