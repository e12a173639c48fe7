import { resolve } from 'node:path'
import { isLoopback } from '../base/address.ts'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { Endpoint, PassedEndpoint } from '../http/listeners.ts'
import type { Service } from '../http/service.ts'

/** Endpoints for clients, and the services there. */
export interface Entrypoint {
  readonly listen: readonly Endpoint[]
  readonly serves: ReadonlySet<Service>
}

export interface EntrypointSettings {
  readonly config: Config
  /** Folder of gateway.yaml. */
  readonly baseDirectory: string
  /** Sockets that were passed to this process; each replaces the configured ones of its entrypoint. */
  readonly passedSockets: readonly PassedEndpoint[]
}

interface SeparateEntrypoint {
  readonly setting: string
  isOpen(config: Config): boolean
  endpointsOf(settings: EntrypointSettings): readonly Endpoint[]
}

/** Services that can have an entrypoint of their own. Passed sockets of it have the name of the service (LISTEN_FDNAMES). */
const separateEntrypoints: { readonly [S in Exclude<Service, 'proxy'>]: SeparateEntrypoint } = {
  forward: {
    setting: 'ForwardProxy:Enabled',
    isOpen: ({ ForwardProxy }) => ForwardProxy.Enabled,
    endpointsOf: forwardEndpoints,
  },
  management: {
    setting: 'System:Server:Management:Enabled',
    isOpen: ({ System }) => System.Server.Management.Enabled,
    endpointsOf: managementEndpoints,
  },
}

// The names of the table.
const separateServices = Object.keys(separateEntrypoints) as (keyof typeof separateEntrypoints)[]
const isSeparate = (name: string | undefined): boolean => separateServices.some(service => service === name)

/**
 * The entrypoints of a configuration: of agents, then of the forward proxy and of people, if they are separate.
 *
 * @throws StartupError when there is nothing to listen on
 */
export function entrypointsOf(settings: EntrypointSettings): readonly [Entrypoint, ...Entrypoint[]] {
  const others = separateServices.flatMap(service => {
    const { isOpen, endpointsOf } = separateEntrypoints[service]
    if (isOpen(settings.config)) return [{ listen: endpointsOf(settings), serves: new Set<Service>([service]) }]
    refuseStray(settings, service)
    return []
  })
  const hasManagement = others.some(({ serves }) => serves.has('management'))
  const agents = new Set<Service>(hasManagement ? ['proxy'] : ['proxy', 'management'])
  return [{ listen: agentEndpoints(settings), serves: agents }, ...others]
}

/** Whether every thread serves it; otherwise only the first thread. */
export const isOfAllThreads = ({ serves }: Entrypoint): boolean => serves.has('proxy') || !serves.has('management')

function refuseStray({ passedSockets }: EntrypointSettings, service: keyof typeof separateEntrypoints): void {
  const stray = passedSockets.find(({ name }) => name === service)
  if (stray === undefined) return
  const { setting } = separateEntrypoints[service]
  throw new StartupError(
    `Descriptor ${stray.fd} was passed for ${service}. Set ${setting} to true, or give the socket another name.`,
  )
}

/** The passed sockets that are not for people. */
export const passedToAgents = (passed: readonly PassedEndpoint[]): readonly PassedEndpoint[] =>
  passed.filter(({ name }) => name !== 'management')

function agentEndpoints({ config, baseDirectory, passedSockets }: EntrypointSettings): readonly Endpoint[] {
  const { Http, Unix, Threads } = config.System.Server
  const passed = passedSockets.filter(({ name }) => !isSeparate(name))
  const tcp: readonly Endpoint[] =
    Http.Enabled && passed.length === 0
      ? [{ host: Http.Host, port: Http.Port, reusePort: Threads > 1, setting: 'System:Server:Http' }]
      : []
  const unix = unixEndpoints(config, baseDirectory, { path: Unix.Path, setting: 'System:Server:Unix:Path' })
  const endpoints = [...passed, ...tcp, ...unix]
  if (endpoints.length > 0) return endpoints
  throw new StartupError(
    'There is nothing to listen on. Set System:Server:Unix:Path, or System:Server:Http:Enabled to true.',
  )
}

function managementEndpoints({ config, baseDirectory, passedSockets }: EntrypointSettings): readonly Endpoint[] {
  const { Host, Port, UnixPath } = config.System.Server.Management
  const passed = passedSockets.filter(({ name }) => name === 'management')
  if (passed.length > 0) return passed
  const unix = unixEndpoints(config, baseDirectory, { path: UnixPath, setting: 'System:Server:Management:UnixPath' })
  return unix.length > 0 ? unix : [{ host: Host, port: Port, setting: 'System:Server:Management' }]
}

function forwardEndpoints({ config, baseDirectory, passedSockets }: EntrypointSettings): readonly Endpoint[] {
  const { Host, Port, UnixPath } = config.ForwardProxy
  const passed = passedSockets.filter(({ name }) => name === 'forward')
  const unix = unixEndpoints(config, baseDirectory, { path: UnixPath, setting: 'ForwardProxy:UnixPath' })
  if (passed.length > 0) return [...passed, ...unix]
  const reusePort = config.System.Server.Threads > 1
  const isPlain = isLoopback(Host)
  return [{ host: Host, port: Port, reusePort, isPlain, setting: 'ForwardProxy' }, ...unix]
}

interface UnixSetting {
  readonly path: string | undefined
  /** Its name, for error messages. */
  readonly setting: string
}

function unixEndpoints(config: Config, baseDirectory: string, { path, setting }: UnixSetting): readonly Endpoint[] {
  const mode = Number.parseInt(config.System.Server.Unix.Mode, 8)
  return path === undefined ? [] : [{ path: resolve(baseDirectory, path), mode, setting }]
}
