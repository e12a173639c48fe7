import { once } from 'node:events'
import { chmodSync, lstatSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import type { Duplex } from 'node:stream'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'

export interface UnixEndpoint {
  readonly path: string
  /** Permission bits of the socket file: users with write permission may connect. */
  readonly mode: number
  /** The setting with its path, for error messages. */
  readonly setting: string
}

/** The peer name of all clients over a unix socket, which have no address. */
export const unixPeer = 'unix'

const unixSockets = new WeakSet<Duplex>()

/** Marks the connections of a server as coming over a unix socket, without an address. */
export function markUnixPeers(server: Server): void {
  server.on('connection', (socket: Socket) => unixSockets.add(socket))
}

/** Marks a connection as coming from the same peer as the one below it. */
export function markSamePeer(connection: Duplex, below: Socket): void {
  if (unixSockets.has(below)) unixSockets.add(connection)
}

export const isUnixPeer = (socket: Socket): boolean => unixSockets.has(socket)

/** Longest path of a unix socket, bytes: the system would silently truncate a longer one. */
const maxPathBytes = 107

/**
 * Listens at a path. Only the socket file of a gateway that died is replaced.
 *
 * @returns removes the socket file, unless another one has taken its place
 * @throws StartupError
 */
export async function listenUnix(server: Server, endpoint: UnixEndpoint): Promise<() => void> {
  try {
    await checkPath(endpoint)
    await bind(server, endpoint)
    const { ino } = lstatSync(endpoint.path)
    return () => removeOwn(endpoint.path, ino)
  } catch (error) {
    throw unixProblem(asError(error), endpoint)
  }
}

/**
 * Checks that a socket can be made at a path, without making it.
 *
 * @throws StartupError
 */
export async function assertUsable(endpoint: UnixEndpoint): Promise<void> {
  try {
    await checkPath(endpoint)
    rmSync(mkdtempSync(`${dirname(endpoint.path)}/.`), { recursive: true })
  } catch (error) {
    throw unixProblem(asError(error), endpoint)
  }
}

/**
 * The socket is created in a private folder and moved into place once its mode is set: nobody can connect before that,
 * and clients never find the path without a socket.
 */
async function bind(server: Server, { path, mode }: UnixEndpoint): Promise<void> {
  const folder = mkdtempSync(`${dirname(path)}/.`)
  try {
    const made = join(folder, 's')
    server.listen(made)
    await once(server, 'listening')
    chmodSync(made, mode)
    renameSync(made, path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function checkPath({ path, setting }: UnixEndpoint): Promise<void> {
  // The name of the private folder has seven bytes.
  const longest = Math.max(Buffer.byteLength(path), Buffer.byteLength(dirname(path)) + '/.abcdef/s'.length)
  if (longest > maxPathBytes) {
    throw new StartupError(`${path} is too long for a socket. Set ${setting} to something shorter.`)
  }
  const there = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (there === undefined) return
  if (!there.isSocket()) {
    throw new StartupError(`${path} exists and is not a socket. Remove it, or set ${setting}.`)
  }
  if (await answers(path)) {
    throw new StartupError(`${path} is in use. Stop what listens there, or set ${setting}.`)
  }
}

/** Whether a process listens on a socket file, also one that is too busy to accept. */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    const { code } = asError(error)
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return false
    if (code === 'EAGAIN') return true
    throw error
  } finally {
    socket.destroy()
  }
}

function removeOwn(path: string, ino: number): void {
  try {
    if (lstatSync(path).ino === ino) rmSync(path)
  } catch {
    // The file is already gone, or may not be removed.
  }
}

function unixProblem(error: NodeJS.ErrnoException, { path, setting }: UnixEndpoint): Error {
  switch (error.code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new StartupError(`${dirname(path)} is not a folder. Create it, or set ${setting}.`)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new StartupError(`${path} needs permissions that this user does not have. Set ${setting}.`)
    default:
      return error
  }
}
