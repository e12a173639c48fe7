/** What this machine lacks for a start. */
import { access, constants, mkdtemp, rmdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { bootstrapFile } from '../agents/bootstrap.ts'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { schema } from '../config/schema.ts'
import { entrypointsOf } from '../gateway/entrypoints.ts'
import { usesPostgres } from '../gateway/storage.ts'
import { assertFree, type Endpoint } from '../http/listeners.ts'
import { assertUsable } from '../http/unix-socket.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import type { Configuration } from './configuration.ts'
import { addressOf, callJson, findGateway } from './gateway-address.ts'

/** Time in which a gateway that listens already must answer, milliseconds: a busy one as well. */
const probeMs = 5_000

/** Each rejects with StartupError when a start would fail, or would find nothing where something is configured. */
export function machineChecks(configuration: Configuration): readonly Promise<void>[] {
  return [checkPolicyFolder(configuration), checkDataFolder(configuration), ...endpointChecks(configuration)]
}

/** A missing folder has no policies, so its agents would be denied everything. The default one need not be there. */
async function checkPolicyFolder({ config, baseDirectory }: Configuration): Promise<void> {
  const { Directory } = config.Policy
  if (Directory === schema.Policy.Directory.default) return
  const folder = resolve(baseDirectory, Directory)
  const { code } = await stat(folder).then(() => ({ code: undefined }), asError)
  if (code === 'ENOENT')
    throw new StartupError(`Policy:Directory: ${folder} does not exist. Correct it, or create the folder.`)
}

async function checkDataFolder({ config, baseDirectory }: Configuration): Promise<void> {
  if (usesPostgres(config)) return
  const folder = resolve(baseDirectory, config.Storage.DataDirectory)
  try {
    // Tried, since the permissions alone do not show it for every user.
    await rmdir(await mkdtemp(`${await firstThere(folder)}/.check-`))
    for (const file of ['gateway.db', 'gateway.lock'])
      await access(await firstThere(join(folder, file)), constants.W_OK)
  } catch (error) {
    const why = asError(error).code
    throw new StartupError(`${folder} cannot be written (${why}). Set Storage:DataDirectory to a writable folder.`)
  }
  for (const file of [bootstrapFile(folder), join(folder, 'signing.key')]) await readPrivateFile(file)
}

/** The path, or the folder above it in which it would be created. */
async function firstThere(path: string): Promise<string> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return found === undefined ? firstThere(dirname(path)) : path
}

function endpointChecks(configuration: Configuration): readonly Promise<void>[] {
  return endpointsOf(configuration).map(endpoint => {
    const isFree =
      'path' in endpoint ? assertUsable(endpoint) : 'fd' in endpoint ? Promise.resolve() : assertFree(endpoint)
    return unlessRuns(configuration, addressOf(endpoint, configuration.config), isFree)
  })
}

/** None are configured when the process that starts the gateway is to pass sockets. */
function endpointsOf(configuration: Configuration): readonly Endpoint[] {
  try {
    return entrypointsOf({ ...configuration, passedSockets: [] }).flatMap(({ listen }) => listen)
  } catch (error) {
    if (error instanceof StartupError) return []
    throw error
  }
}

/** The configuration may be that of the gateway which runs there. */
async function unlessRuns(configuration: Configuration, at: string, check: Promise<void>): Promise<void> {
  try {
    await check
  } catch (error) {
    if (!(await isGateway(configuration, at))) throw error
  }
}

async function isGateway(configuration: Configuration, at: string): Promise<boolean> {
  try {
    const gateway = await findGateway(configuration, at)
    const { text } = await callJson(gateway, { method: 'GET', path: '/health', withinMs: probeMs })
    // The port of the forward proxy takes no path.
    return text.includes('"healthCheckDuration"') || text.includes('"code":"invalid_target"')
  } catch {
    return false
  }
}
