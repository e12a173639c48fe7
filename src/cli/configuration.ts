import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { formatProblem } from '../config/given.ts'
import { type LoadedConfig, loadConfig, type ValidConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Shell } from './shell.ts'

/** The option that every command with a configuration takes. */
export const configOption = { config: { type: 'string' } } as const

export const configHelp = `  --config FILE  configuration file; gateway.yaml of the working directory if absent
                 Environment variables override it: SYSTEM__SERVER__HTTP__PORT=8080`

export interface Configuration {
  readonly config: Config
  /** The settings that were given, and where. */
  readonly given: ValidConfig['given']
  /** The configuration file as given; undefined when there is none, and defaults and environment apply. */
  readonly file: { readonly path: string; readonly text: string } | undefined
  /** Base of relative paths in the configuration file. */
  readonly baseDirectory: string
}

/** For messages: where the settings are, or would be. */
export const nameOfFile = ({ file }: Pick<Configuration, 'file'>): string => file?.path ?? 'gateway.yaml'

/**
 * The configuration a command works with.
 *
 * @throws StartupError with a line for each mistake, or when the file that was asked for cannot be read
 */
export function readConfiguration(shell: Shell, path: string | undefined): Configuration {
  const read = tryConfiguration(shell, path)
  if ('mistakes' in read) throw new StartupError(['the configuration is not valid:', ...read.mistakes].join('\n  '))
  return read
}

/**
 * The same, or a line for each mistake in it.
 *
 * @throws StartupError when the file that was asked for cannot be read
 */
export function tryConfiguration(
  shell: Shell,
  path: string | undefined,
): Configuration | { readonly mistakes: readonly string[] } {
  const file = readFile(path)
  const loaded = loadConfig({ file, env: shell.env })
  if ('problems' in loaded) return { mistakes: loaded.problems.map(formatProblem) }
  return { ...loaded, file, baseDirectory: file === undefined ? '.' : dirname(resolve(file.path)) }
}

/**
 * The same settings, read again.
 *
 * @throws StartupError when the file cannot be read
 */
export const loadConfiguration = (shell: Shell, path: string | undefined): LoadedConfig =>
  loadConfig({ file: readFile(path), env: shell.env })

function readFile(asked: string | undefined): Configuration['file'] {
  const path = asked ?? 'gateway.yaml'
  try {
    return { path, text: readFileSync(path, 'utf8') }
  } catch (error) {
    const { code } = asError(error)
    if (asked === undefined && code === 'ENOENT') return undefined
    throw new StartupError(`${path} cannot be read (${code}). Name another file with --config.`)
  }
}
