/** The program of `run`, until it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { asError } from '../../base/as-error.ts'
import type { Shell } from '../shell.ts'

/** Exit codes of shells for a program that cannot be started, and for one that is not there. */
export const cannotStart = 126
const notFound = 127

const caught = ['SIGINT', 'SIGQUIT', 'SIGWINCH', 'SIGTERM', 'SIGHUP'] as const
/** Signals that a terminal sends to every program of its session: passed on, they would arrive twice. */
const sentByTerminals: readonly string[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH']

/** The program, for signals. */
export interface SocketReceiver {
  kill(signal: NodeJS.Signals): unknown
  /** Whether it has a session of its own, to which no terminal sends signals. */
  readonly isDetached: boolean
}

/** Signals to this process, which are for the program. */
export type Signals = ReturnType<typeof catchSignals>

/** From here on no signal ends this process: it has to tidy up behind the program. */
export function catchSignals({ onSignal }: Pick<Shell, 'onSignal'>) {
  const early: NodeJS.Signals[] = []
  let pass = (signal: NodeJS.Signals): unknown => early.push(signal)
  const isInTerminal = isatty(0)
  for (const signal of caught) onSignal(signal, () => pass(signal))
  return {
    /** Passes them on, those too that came before. */
    passTo(receiver: SocketReceiver) {
      const hasIt = (signal: NodeJS.Signals) => isInTerminal && !receiver.isDetached && sentByTerminals.includes(signal)
      for (const signal of early) receiver.kill(signal)
      pass = signal => hasIt(signal) || receiver.kill(signal)
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
  signals.passTo({ kill: signal => child.kill(signal), isDetached: false })
  return untilEnd(child, error => {
    complain(`agent-gateway run: ${file} cannot be started (${error.code ?? error.message})`)
    return error.code === 'ENOENT' ? notFound : cannotStart
  })
}

/**
 * The exit code of a process, as `runProgram` gives it.
 *
 * @param failed gives the exit code when it could not be started
 */
export async function untilEnd(child: ChildProcess, failed: (error: NodeJS.ErrnoException) => number): Promise<number> {
  try {
    const [code, signal] = await once(child, 'exit')
    // Node names it as the table does.
    return signal === null ? code : 128 + constants.signals[signal as NodeJS.Signals]
  } catch (error) {
    return failed(asError(error))
  }
}
