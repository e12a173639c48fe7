import { resolve } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { PassedPlace, Place } from '../http/listeners.ts'
import type { Service } from '../http/service.ts'

/** Where clients connect to, and what is served to them there. */
export interface Entrypoint {
  readonly listen: readonly Place[]
  readonly serves: ReadonlySet<Service>
}

export interface EntrypointSettings {
  readonly config: Config
  /** Folder of gateway.yaml. */
  readonly baseDirectory: string
  /** Sockets that were passed to this process; each replaces the configured ones of its entrypoint. */
  readonly passedSockets: readonly PassedPlace[]
}

const everything: ReadonlySet<Service> = new Set<Service>(['proxy', 'management'])
const proxyAlone: ReadonlySet<Service> = new Set<Service>(['proxy'])
const managementAlone: ReadonlySet<Service> = new Set<Service>(['management'])

/** Name of a passed socket (LISTEN_FDNAMES) on which management is served. */
const managementName = 'management'

/**
 * The entrypoints of a configuration: that of agents, then that of people if it is another one.
 *
 * @throws StartupError when there is nothing to listen on
 */
export function entrypointsOf(settings: EntrypointSettings): readonly [Entrypoint, ...Entrypoint[]] {
  if (!settings.config.System.Server.Management.Enabled) {
    const stray = settings.passedSockets.find(({ name }) => name === managementName)
    if (stray === undefined) return [{ listen: agentPlaces(settings), serves: everything }]
    throw new StartupError(
      `Descriptor ${stray.fd} was passed for management. Set System:Server:Management:Enabled to true, or give the socket another name.`,
    )
  }
  return [
    { listen: agentPlaces(settings), serves: proxyAlone },
    { listen: managementPlaces(settings), serves: managementAlone },
  ]
}

/** Sockets that agents connect to, of those that were passed. */
export const passedToAgents = (passed: readonly PassedPlace[]): readonly PassedPlace[] =>
  passed.filter(({ name }) => name !== managementName)

function agentPlaces({ config, baseDirectory, passedSockets }: EntrypointSettings): readonly Place[] {
  const { Http, Unix, Threads } = config.System.Server
  const passed = passedToAgents(passedSockets)
  const tcp: readonly Place[] =
    Http.Enabled && passed.length === 0
      ? [{ host: Http.Host, port: Http.Port, reusePort: Threads > 1, setting: 'System:Server:Http' }]
      : []
  const unix = unixPlaces(config, baseDirectory, { path: Unix.Path, setting: 'System:Server:Unix:Path' })
  const places = [...passed, ...tcp, ...unix]
  if (places.length > 0) return places
  throw new StartupError(
    'There is nothing to listen on. Set System:Server:Unix:Path, or System:Server:Http:Enabled to true.',
  )
}

function managementPlaces({ config, baseDirectory, passedSockets }: EntrypointSettings): readonly Place[] {
  const { Host, Port, UnixPath } = config.System.Server.Management
  const passed = passedSockets.filter(({ name }) => name === managementName)
  if (passed.length > 0) return passed
  const unix = unixPlaces(config, baseDirectory, { path: UnixPath, setting: 'System:Server:Management:UnixPath' })
  return unix.length > 0 ? unix : [{ host: Host, port: Port, setting: 'System:Server:Management' }]
}

interface UnixSetting {
  readonly path: string | undefined
  /** Its name, for error messages. */
  readonly setting: string
}

function unixPlaces(config: Config, baseDirectory: string, { path, setting }: UnixSetting): readonly Place[] {
  const mode = Number.parseInt(config.System.Server.Unix.Mode, 8)
  return path === undefined ? [] : [{ path: resolve(baseDirectory, path), mode, setting }]
}
