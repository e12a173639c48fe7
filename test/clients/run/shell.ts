/**
 * Runs inside of `agent-gateway run`: starts the programs that the driver names, one a line, and tells what they print. So one
 * run is enough for many clients.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** What the driver sends. */
export interface Start {
  readonly id: number
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** What it is told. */
export interface Told {
  readonly id: number
  readonly out?: string
  readonly err?: string
  /** The exit code, or the signal that ended it. */
  readonly end?: number | string
}

const tell = (told: Told): void => void process.stdout.write(`${JSON.stringify(told)}\n`)

createInterface({ input: process.stdin }).on('line', line => {
  const { id, command, cwd, env } = JSON.parse(line) as Start
  const [file = '', ...args] = command
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.setEncoding('utf8').on('data', out => tell({ id, out }))
  child.stderr.setEncoding('utf8').on('data', err => tell({ id, err }))
  child.on('error', ({ message }) => tell({ id, err: message, end: 127 }))
  child.on('close', (code, signal) => tell({ id, end: code ?? signal ?? '' }))
})
