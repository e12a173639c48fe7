import { crossCheck } from './check.ts'
import { type Environment, readEnvironment } from './environment.ts'
import { type ConfigFile, readFile } from './file.ts'
import { assemble, type ConfigFindings, type ConfigProblem } from './given.ts'
import { type Config, schema } from './schema.ts'

export interface ConfigSources {
  /** gateway.yaml; without it the defaults and the environment are all there is. */
  readonly file?: ConfigFile | undefined
  readonly env: Environment
}

export interface ValidConfig {
  readonly config: Config
  /** The settings that were given, and where; the others have their defaults. */
  readonly given: ConfigFindings['given']
}

export type LoadedConfig = ValidConfig | { readonly problems: readonly ConfigProblem[] }

/**
 * The configuration: defaults, overridden by gateway.yaml, overridden by the environment. Every mistake in either
 * is reported, and with one there is no configuration.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const findings: ConfigFindings = { given: new Map(), problems: [] }
  if (sources.file !== undefined) readFile(schema, sources.file, findings)
  readEnvironment(schema, sources.env, findings)
  // Each setting of the schema has a value of its type: what was given was checked, and defaults have it.
  const config = assemble(schema, findings.given) as Config
  const problems = [...findings.problems, ...crossCheck(config, findings.given, sources.file?.path ?? 'configuration')]
  return problems.length > 0 ? { problems } : { config, given: findings.given }
}
