import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { asError } from '../base/as-error.ts'
import { printableJson } from '../base/deceptive.ts'
import { nearest } from '../base/nearest.ts'
import type { Environment } from '../config/environment.ts'

/** The process, for commands. Lines are given without their end. */
export interface Shell {
  /** The arguments behind the name of the command. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly pid: number
  /** A line of the result, to standard output. */
  readonly print: (text: string) => void
  /** A line for the person who runs it, to standard error. */
  readonly complain: (text: string) => void
  readonly onSignal: (name: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT' | 'SIGWINCH', handler: () => void) => void
  /** `handler` runs last, however the process ends; asynchronous work that it starts is not awaited. */
  readonly onExit: (handler: () => void) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => void
  /** Ends it even when a thread hangs in the system, which `exit` would wait for. Nothing is tidied up. */
  readonly kill: () => void
}

/** One subcommand. `run` gives the exit code: 0 done, 1 failed or problems found, 2 used wrongly. */
export interface Command {
  readonly help: string
  readonly run: (shell: Shell) => Promise<number>
}

/** A command line that is not understood: printed with the help of the command, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** @throws UsageError */
export function misused(message: string): never {
  throw new UsageError(message)
}

/** The option of commands whose result other programs read. */
export const jsonOption = { json: { type: 'boolean' } } as const

export const jsonHelp = '  --json         print the result as one line of JSON'

/** Deceptive characters are JSON escapes. */
export function printJson(shell: Shell, result: object): void {
  shell.print(printableJson(JSON.stringify(result)))
}

/** With --json the result, else the lines for people. Gives the exit code. */
export function printResult(
  shell: Shell,
  { json }: { readonly json?: boolean | undefined },
  result: object,
  lines: readonly string[],
): number {
  if (json === true) printJson(shell, result)
  else for (const line of lines) shell.print(line)
  return 'ok' in result && result.ok === false ? 1 : 0
}

/**
 * The options and operands of a command.
 *
 * @throws UsageError for an option that is not known or lacks its value, or too many operands
 */
export function readArgs<const T extends ParseArgsOptionsConfig>(shell: Shell, options: T, operands = 0) {
  const parsed = parse(shell, options)
  if (parsed.positionals.length > operands) throw new UsageError(`unexpected argument: ${parsed.positionals[operands]}`)
  return parsed
}

function parse<const T extends ParseArgsOptionsConfig>(shell: Shell, options: T) {
  try {
    return parseArgs({ args: [...shell.args], options, allowPositionals: true, strict: true })
  } catch (error) {
    // Node's further sentences are about operands that look like options, which no command has.
    const message = asError(error).message.replace(/\. To specify .*/s, '')
    const [, unknown = ''] = /^Unknown option '-+([^'=]+)/.exec(message) ?? []
    const name = nearest(unknown, Object.keys(options))
    throw new UsageError(name === undefined ? message : `${message}, did you mean --${name}?`)
  }
}
