import { StartupError } from '../base/refusals.ts'
import { prepareSet } from '../policies/entry.ts'
import { readPolicyFile } from '../policies/files.ts'
import { languageOf } from '../policies/language.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import type { Configuration } from './configuration.ts'

/** The policy of a file. @throws StartupError with a line for each mistake */
export async function readOnePolicy(path: string, { config }: Configuration): Promise<CompiledPolicy> {
  const read = await readPolicyFile(path).catch(({ code }) => [`${path} cannot be read (${code})`])
  if (!('document' in read)) throw new StartupError(read.join('\n'))
  const { entries, lines } = await prepareSet(languageOf(config), [read])
  const [entry] = entries.values()
  if (entry === undefined) throw new StartupError(lines.join('\n'))
  return entry.compiled
}
