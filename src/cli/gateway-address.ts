import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { type RequestOptions as SecureOptions, request as secureRequest } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectSecurely } from 'node:tls'
import { StartupError } from '../base/refusals.ts'
import { entrypointsOf } from '../gateway/entrypoints.ts'
import { readCertificate } from '../http/certificate.ts'
import type { Endpoint } from '../http/listeners.ts'
import { request } from '../http/node-http.ts'
import type { Certificate } from '../http/servers.ts'
import type { Service } from '../http/service.ts'
import { type Configuration, nameOfFile } from './configuration.ts'

/** Lines of a help text: how a command finds the gateway. */
export const atHelp = `  --at ADDRESS   address of the gateway, as printed at start: http://HOST:PORT, https://HOST:PORT or unix:PATH;
                 if absent, the address in the configuration`

/** Where the API of the running gateway is reached from the same machine. */
export interface GatewayAddress {
  /** For people. */
  readonly name: string
  readonly secure: boolean
  readonly options: RequestOptions & SecureOptions
}

/**
 * The address that was given, or the one of the configuration.
 *
 * @param at an address as the gateway prints it at its start; undefined for that of the configuration
 * @param service that is asked for there
 * @throws StartupError when it is no address
 */
export async function findGateway(
  configuration: Configuration,
  at: string | undefined,
  service: Service = 'management',
): Promise<GatewayAddress> {
  const name = at ?? configured(configuration, service)
  if (name.startsWith('unix:')) return { name, secure: false, options: { socketPath: name.slice('unix:'.length) } }
  const url = URL.parse(name)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new StartupError(
      `${name} is not an address. Use one such as http://127.0.0.1:7080 or unix:/run/gateway.sock.`,
    )
  }
  const secure = url.protocol === 'https:'
  const options = { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port || (secure ? 443 : 80) }
  const certificate = secure ? await readCertificate(configuration.config, configuration.baseDirectory) : undefined
  return { name, secure, options: certificate === undefined ? options : { ...options, ...trustIn(certificate) } }
}

/**
 * The same for the forward proxy.
 *
 * @throws StartupError when there is none
 */
export async function findForwardProxy(configuration: Configuration, at: string | undefined): Promise<GatewayAddress> {
  if (at !== undefined) return findGateway(configuration, at)
  const { Enabled, Port, UnixPath } = configuration.config.ForwardProxy
  if (!Enabled) {
    throw new StartupError(
      `ForwardProxy:Enabled is false in ${nameOfFile(configuration)}. Set it to true and start the gateway again. If the gateway has other settings, such as variables of its environment, set the same ones here, or name its forward proxy with --proxy.`,
    )
  }
  if (Port === 0 && UnixPath === undefined) {
    throw new StartupError('ForwardProxy:Port is 0, so the port is not known. Name the address with --proxy.')
  }
  const places = entrypointsOf({ ...configuration, passedSockets: [] }).find(({ serves }) =>
    serves.has('forward'),
  )?.listen
  const endpoint = places?.find(one => !('port' in one) || one.port !== 0)
  if (endpoint === undefined) throw new Error('cannot happen: the forward proxy is enabled')
  return findGateway(configuration, addressOf(endpoint, configuration.config))
}

/**
 * Begins a connection to an address.
 *
 * @param onReady called once bytes can be sent
 */
export function connectTo({ secure, options }: GatewayAddress, onReady: () => void): Socket {
  const { socketPath, host, port, ca, allowPartialTrustChain, checkServerIdentity } = options
  if (socketPath) return connect({ path: socketPath, allowHalfOpen: true }, onReady)
  const endpoint = { host: host ?? 'localhost', port: Number(port), allowHalfOpen: true }
  if (!secure) return connect(endpoint, onReady)
  const trust = ca === undefined ? {} : { ca, allowPartialTrustChain, checkServerIdentity }
  const named = isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {}
  return connectSecurely({ ...endpoint, ...trust, ...named } as ConnectionOptions, onReady) // The options are set together.
}

/** The first address at which a service is. */
function configured(configuration: Configuration, service: Service): string {
  const entrypoints = entrypointsOf({ ...configuration, passedSockets: [] })
  const [endpoint] = entrypoints.find(({ serves }) => serves.has(service))?.listen ?? []
  if (endpoint === undefined) throw new Error(`cannot happen: no entrypoint serves ${service}`)
  return addressOf(endpoint, configuration.config)
}

/** Address at which this machine reaches a configured endpoint. */
export function addressOf(endpoint: Endpoint, { System: { Server } }: Configuration['config']): string {
  if ('path' in endpoint) return `unix:${endpoint.path}`
  if ('fd' in endpoint) throw new TypeError('the address of a passed socket is not known')
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[endpoint.host] ?? endpoint.host
  const scheme = Server.Tls.CertificateFile === undefined || endpoint.isPlain === true ? 'http' : 'https'
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${endpoint.port}`
}

/** Accepts exactly the configured certificate, whatever its issuer and name. */
function trustIn({ cert }: Certificate): SecureOptions {
  const { fingerprint256 } = new X509Certificate(cert)
  return {
    ca: cert,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, peer) =>
      peer.fingerprint256 === fingerprint256
        ? undefined
        : new StartupError('the server presented a different certificate'),
  }
}

export interface JsonCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  readonly token?: string
  /** Milliseconds. */
  readonly withinMs?: number
}

/** @throws StartupError when no gateway answers */
export async function callJson(
  gateway: GatewayAddress,
  { method, path, body, token, withinMs }: JsonCall,
): Promise<{ readonly status: number; readonly text: string }> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    Accept: 'application/json', // A 401 says why in JSON alone.
    ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  }
  const sent = (gateway.secure ? secureRequest : request)({
    ...gateway.options,
    ...{ path, method, headers, agent: false },
    ...(withinMs !== undefined && { signal: AbortSignal.timeout(withinMs) }),
  })
  sent.end(text)
  const answering = once(sent, 'response').catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(
      `No gateway answers at ${gateway.name} (${error.code ?? error.message}). Start it, or name its address with --at.`,
    )
  })
  const answer: IncomingMessage = (await answering)[0]
  let answered = ''
  for await (const chunk of answer.setEncoding('utf8')) answered += chunk
  return { status: answer.statusCode ?? 0, text: answered }
}
