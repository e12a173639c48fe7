/** `agent-gateway run`, in which clients are started. */
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { type RunSetup, runMain } from '../../fixtures/process.ts'
import type { Start, Told } from './shell.ts'

/** A client that was started. */
export interface Started {
  /** What it has printed so far, on both streams. */
  readonly said: () => string
  /** Resolves once it has printed a text; rejects when it ends without. */
  shows(text: string): Promise<void>
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

export interface Session {
  start(command: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Started
  /** What `run` itself said. */
  readonly complaints: () => string
  end(): Promise<void>
}

const shell = fileURLToPath(new URL('shell.ts', import.meta.url))

/** @param args those of `run`, before the program */
export function startSession(t: Test, args: readonly string[], setup: RunSetup): Session {
  const run = runMain(t, ['run', ...args, '--', process.execPath, shell], setup)
  const started: ReturnType<typeof createStarted>[] = []
  createInterface({ input: run.child.stdout! }).on('line', line => {
    const told = JSON.parse(line) as Told
    started[told.id]?.take(told)
  })
  void run.ended.then(end => {
    for (const one of started) one.take({ id: 0, err: `\n${run.err()}`, end: `run ended with ${end}` })
  })
  return {
    complaints: run.err,
    start(command, cwd, env) {
      const one = createStarted()
      const start: Start = { id: started.push(one) - 1, command, cwd, env }
      run.child.stdin!.write(`${JSON.stringify(start)}\n`)
      return one
    },
    async end() {
      run.child.stdin!.end()
      await run.ended
    },
  }
}

function createStarted(): Started & { take(told: Told): void } {
  let said = ''
  const { promise: ended, resolve } = Promise.withResolvers<number | string>()
  const waiting = new Set<() => void>()
  return {
    said: () => said,
    ended,
    shows: text =>
      new Promise((done, fail) => {
        const look = () => said.includes(text) && done()
        waiting.add(look)
        look()
        void ended.then(end => fail(new Error(`ended with ${end} and never showed "${text}":\n${said}`)))
      }),
    take({ out = '', err = '', end }) {
      said += out + err
      for (const look of waiting) look()
      if (end !== undefined) resolve(end)
    },
  }
}
