import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import '../../test/fixtures/signals.ts'

/** A process under measurement or beside it. */
export interface Running {
  readonly pid: number
  /** Resolves with the match once what it prints holds it; rejects when it ends without. */
  shows(pattern: RegExp): Promise<RegExpMatchArray>
  /** Resolves once it accepts connections on that port of 127.0.0.1; rejects when it ends without. */
  listensOn(port: number): Promise<void>
  /** Asks it to end and waits for that; after `graceMs` it is killed. */
  stop(graceMs?: number): Promise<void>
}

export interface Start {
  readonly command: readonly string[]
  /** Cores it may run on, as `taskset -c` takes them; undefined for any. */
  readonly cores?: string | undefined
  readonly cwd?: string
  /** File that takes its standard output; it is read for `shows` otherwise. */
  readonly outputFile?: string
}

const askAgainMs = 20
const children = new Set<ChildProcess>()
const folders = new Set<string>()

/** However this process ends, nothing of it stays behind. */
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** A folder that is removed when this process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'))
  folders.add(folder)
  return folder
}

/** Starts a process that runs until it is stopped. It sees none of our environment that could be a setting. */
export function start({ command, cores, cwd, outputFile }: Start): Running {
  const output = outputFile === undefined ? 'pipe' : openSync(outputFile, 'w')
  const [file = '', ...args] = pinned(command, cores)
  const child = spawn(file, args, {
    env: plainEnv(),
    stdio: ['ignore', output, 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  if (typeof output === 'number') closeSync(output)
  children.add(child)
  let printed = ''
  const note = (text: unknown) => {
    printed = (printed + String(text)).slice(-100_000)
  }
  child.stdout?.on('data', note)
  child.stderr?.on('data', note)
  const closed = once(child, 'close').then(() => undefined, note)
  void closed.finally(() => children.delete(child))
  /** Asks again and again, until there is an answer or the process has ended. */
  const until = async <T>(ask: () => T | Promise<T>): Promise<NonNullable<T>> => {
    while (children.has(child)) {
      const answer = await ask()
      if (answer) return answer
      await setTimeout(askAgainMs)
    }
    throw new Error(`${command.join(' ')} ended before it was ready:\n${printed}`)
  }
  return {
    pid: child.pid ?? 0,
    shows: pattern => until(() => printed.match(pattern)),
    async listensOn(port) {
      await until(() => isOpen(port))
    },
    async stop(graceMs = 5_000) {
      if (!children.has(child)) return
      child.kill('SIGTERM')
      const ended = await Promise.race([closed.then(() => true), setTimeout(graceMs, false, { ref: false })])
      if (!ended) child.kill('SIGKILL')
      await closed
    },
  }
}

/** Runs a command to its end and returns what it printed to standard output. */
export async function run(command: readonly string[], cores?: string): Promise<string> {
  const [file = '', ...args] = pinned(command, cores)
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  let out = ''
  let err = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    err += chunk
  })
  const [code, signal] = await once(child, 'close').finally(() => children.delete(child))
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code ?? signal}:\n${err}${out}`)
  return out
}

/** First line that a tool prints about its version; undefined when it is not installed. */
export async function versionOf(command: readonly string[]): Promise<string | undefined> {
  const [file = '', ...args] = command
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      text += chunk
    })
  }
  const ended = await once(child, 'close').catch(() => undefined)
  return ended === undefined ? undefined : (text.split('\n')[0] ?? '')
}

/** A port that was free a moment ago, for servers that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('cannot happen: a TCP server has a port')
  return address.port
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return once(socket, 'connect')
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy())
}

const pinned = (command: readonly string[], cores: string | undefined): readonly string[] =>
  cores === undefined ? command : ['taskset', '-c', cores, ...command]

/** Pins a process that runs already, and those that it has started. Those that it starts later inherit it. */
export async function pin(pid: number, cores: string | undefined): Promise<void> {
  if (cores === undefined) return
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  for (const one of [pid, ...children]) await run(['taskset', '-acp', cores, String(one)])
}

function plainEnv(): Record<string, string | undefined> {
  const { PATH, HOME } = process.env
  return { PATH, HOME }
}
