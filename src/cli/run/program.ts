/** The program of `run`, until it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { asError } from '../../base/as-error.ts'
import type { Shell } from '../shell.ts'

/** Exit codes of shells for a program that cannot be started, and for one that is not there. */
const cannotStart = 126
const notFound = 127

const caught = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const
/** Signals that a terminal sends to every program in it: passed on, they would arrive twice. */
const sentByTerminals: readonly string[] = ['SIGINT', 'SIGQUIT']

/** Signals to this process, which are for the program. */
export interface Signals {
  /** Passes them on, those too that came before. */
  passTo(child: Pick<ChildProcess, 'kill'>): void
}

/** From here on no signal ends this process: it has to tidy up behind the program. */
export function catchSignals({ onSignal }: Pick<Shell, 'onSignal'>): Signals {
  const early: NodeJS.Signals[] = []
  let pass = (signal: NodeJS.Signals): unknown => early.push(signal)
  const isInTerminal = isatty(0)
  for (const signal of caught) onSignal(signal, () => pass(signal))
  return {
    passTo(child) {
      for (const signal of early) child.kill(signal)
      pass = signal => (isInTerminal && sentByTerminals.includes(signal)) || child.kill(signal)
    },
  }
}

export interface Program {
  readonly command: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
}

/**
 * Runs the program with our standard streams.
 *
 * @returns its exit code, or 128 and the number of the signal that ended it, as shells have it
 */
export function runProgram({ complain }: Shell, signals: Signals, { command, env }: Program): Promise<number> {
  const [file, ...args] = command
  const child = spawn(file, args, { env, stdio: 'inherit' })
  return untilEnd(child, signals, error => {
    complain(`agent-gateway run: ${file} cannot be started (${error.code ?? error.message})`)
    return error.code === 'ENOENT' ? notFound : cannotStart
  })
}

/** @param failed gives the exit code when the program could not be started */
async function untilEnd(
  child: ChildProcess,
  signals: Signals,
  failed: (error: NodeJS.ErrnoException) => number,
): Promise<number> {
  const ending = once(child, 'exit')
  signals.passTo(child)
  try {
    const [code, signal] = await ending
    // Node names it as the table does.
    return signal === null ? code : 128 + constants.signals[signal as NodeJS.Signals]
  } catch (error) {
    return failed(asError(error))
  }
}
