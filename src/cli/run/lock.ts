/**
 * A lock around the program of `run`: namespaces in which no interface leads out and no socket of the system is there. The one
 * way out is a port of the loopback interface, which the relay serves from outside. Made by bubblewrap, without root.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import type { Server } from 'node:net'
import { extname } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { parseJson } from '../../base/json.ts'
import { isObject } from '../../base/records.ts'
import type { Program } from './program.ts'
import type { Relay } from './relay.ts'

/** Port of the relay, as the program sees it. */
export const lockedPort = 3_128

/** What a locked program does not see of its machine, or cannot change. Paths are absolute; those that are not there are left out. */
export interface Hidden {
  readonly folders: readonly string[]
  readonly files: readonly string[]
  readonly unchangeable: readonly string[]
}

export interface LockParts {
  readonly relay: Relay
  /** Folder that the program reads although it is below /tmp. */
  readonly folder: string
  /** The working directory of the program. */
  readonly cwd: string
  /** Stands in for the roots of the system. */
  readonly bundle: { readonly own: string; readonly system: string } | undefined
  readonly hidden: Hidden
  /** Filter of system calls for seccomp(2). */
  readonly filter: Buffer | undefined
}

/** Folders with sockets of the system. A program finds them empty. */
const emptied = ['/run', '/tmp']
const namespaces = ['--unshare-net', '--unshare-pid', '--unshare-ipc', '--die-with-parent', '--cap-drop', 'ALL']
const starter = fileURLToPath(new URL(`./lock-starter${extname(import.meta.url)}`, import.meta.url))

/** Descriptors: the channel to this process, where bubblewrap writes its process id, and where it reads the filter. */
const channel = 3
const information = 4
const filtering = 5
/** The program gets neither the channel nor its variables. Its descriptor is closed, so nothing but the port leads out. */
const script = `NODE_OPTIONS= NODE_EXTRA_CA_CERTS= "$1" "$2" ${lockedPort} || exit 126
shift 2; unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE; exec "$@" ${channel}>&- ${information}>&-`

/** Why nothing can be locked here, with the remedy; undefined when it can. */
export function lockProblem(): string | undefined {
  if (process.platform !== 'linux')
    return `--lock needs Linux; this is ${process.platform}. Run it in a container or a virtual machine.`
  const { error, status, stderr } = spawnSync(
    'bwrap',
    [...namespaces, '--ro-bind', '/', '/', '--proc', '/proc', 'true'],
    {
      encoding: 'utf8',
    },
  )
  if (error !== undefined)
    return `--lock needs bubblewrap, which is not here (${asCode(error)}). Install it: apt-get install bubblewrap`
  if (status === 0) return undefined
  return `bubblewrap cannot make namespaces here: ${stderr.trim() || `it ended with ${status}`}. ${remedy}`
}

const asCode = (error: NodeJS.ErrnoException): string => error.code ?? error.message
const remedy =
  'The system must let users make namespaces: on Ubuntu 24.04 by an AppArmor profile for bwrap, elsewhere by the settings kernel.unprivileged_userns_clone=1 and user.max_user_namespaces; in a container by its seccomp profile.'

export function startLocked(parts: LockParts, { command, env }: Program) {
  const inside = ['sh', '-c', script, 'agent-gateway run', process.execPath, starter, ...command]
  const filtered = parts.filter === undefined ? [] : ['--seccomp', String(filtering)]
  const args = [...namespaces, ...filtered, '--info-fd', String(information), ...mounts(parts), '--', ...inside]
  const child = spawn('bwrap', args, {
    env: { ...env, TMPDIR: '/tmp' },
    cwd: parts.cwd,
    // A session of its own: the program cannot type into the terminal of the caller, whose signals are passed on.
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc', 'pipe', parts.filter === undefined ? 'ignore' : 'pipe'],
  })
  // A child that cannot be started takes nothing.
  const takesFilter = (child.stdio as readonly unknown[])[filtering] as Writable | null
  takesFilter?.on('error', () => {}).end(parts.filter)
  child.once('message', (_, server) => {
    // What the starter sends, and nothing else has the channel yet.
    serve(server as Server, parts.relay)
    child.send('served', () => child.disconnect())
  })
  // The fifth of its descriptors is a pipe.
  const first = firstProcess(child.stdio[information] as Readable)
  const kill = (signal: NodeJS.Signals) => void first.then(pid => deliver(child, pid, signal))
  return { child, receiver: { kill, isDetached: true } }
}

function serve(server: Server, relay: Relay): void {
  // It came over the channel without this.
  Object.assign(server, { allowHalfOpen: true })
  server.on('connection', relay)
  // The program may have ended before this was read.
  server.unref()
}

function mounts({ folder, cwd, bundle, hidden }: LockParts): readonly string[] {
  const { folders, files, unchangeable } = hidden
  const isEmptied = (path: string) => emptied.some(one => path.startsWith(`${one}/`))
  const back = [cwd, process.execPath, starter].map(path => realpathSync(path)).filter(isEmptied)
  return [
    ...['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...emptied.flatMap(path => ['--tmpfs', path]),
    ...back.flatMap(path => [path === realpathSync(cwd) ? '--bind' : '--ro-bind', path, path]),
    ...['--ro-bind', folder, folder],
    ...(bundle === undefined ? [] : ['--ro-bind', bundle.own, realpathSync(bundle.system)]),
    ...present(unchangeable).flatMap(path => ['--ro-bind', path, path]),
    ...present(files).flatMap(path => ['--ro-bind', '/dev/null', path]),
    ...present(folders).flatMap(path => ['--tmpfs', path]),
    ...['--chdir', cwd],
  ]
}

/** Those that are there, without symbolic links: nothing can be mounted over a link. */
const present = (paths: readonly string[]): readonly string[] =>
  paths.flatMap(path => (statSync(path, { throwIfNoEntry: false }) === undefined ? [] : [realpathSync(path)]))

/** Id of the first process in the lock; undefined when bubblewrap did not start it. */
async function firstProcess(output: Readable): Promise<number | undefined> {
  let text = ''
  for await (const chunk of output) {
    text += chunk
    const answer = parseJson(text)
    const pid = isObject(answer) ? answer['child-pid'] : undefined
    if (typeof pid === 'number') return pid
  }
  return undefined
}

/** The first process in the lock waits for the program, which is its first child. */
function deliver(child: ChildProcess, first: number | undefined, signal: NodeJS.Signals): void {
  const [program] = first === undefined ? [] : childrenOf(first)
  try {
    if (program === undefined) child.kill(signal)
    else process.kill(program, signal)
  } catch {
    // It has just ended.
  }
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
