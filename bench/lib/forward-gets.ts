/** The small GET through the forward proxy: how its clients send it, and roads that compare.ts and profile.ts take. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type StartedGateway, startGateway } from './gateway.ts'
import type { Request } from './load.ts'
import { temporaryFolder } from './processes.ts'
import type { Road } from './roads.ts'
import { benchPolicy } from './rules.ts'
import { smallGet, type Work } from './works.ts'

export const asFresh = (request: Request): Request => ({
  ...request,
  headers: { ...request.headers, Connection: 'close' },
})

export const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

/** Settings under which no tunnel is refused or ends. */
export const forwardSettings = {
  ForwardProxy: { Enabled: true, Port: 0, MaxTunnelsPerAgent: 65_535, KeepAliveSeconds: 3_600 },
  System: { Server: { MaxConnections: 30_000, MaxConnectionsPerAddress: 0 } },
}

/** A PEM file with the authority of a gateway. */
export async function authorityOf({ url }: StartedGateway): Promise<string> {
  const file = join(temporaryFolder(), 'ca.pem')
  writeFileSync(file, await (await fetch(`${url}/forward-proxy/ca.pem`)).text())
  return file
}

export interface Intercepted {
  /** URL of an upstream with TLS. */
  readonly upstream: string
  /** PEM file with the authority of the gateway. */
  readonly ca: string
  /** Sessions of TLS are resumed. */
  readonly resumes?: boolean
}

/** In a tunnel. */
export function interceptedGet(gateway: StartedGateway, { upstream, ca, resumes = false }: Intercepted): Request {
  const headers = { 'Proxy-Authorization': basic(`agent:${gateway.token}`) }
  const through = { form: 'tunnel', port: gateway.forwardPort, ca, headers, resumes } as const
  return { url: upstream + smallGet.path, method: 'GET', headers: {}, through }
}

/** With the whole URL. */
export function absoluteGet({ token, forwardPort: port }: StartedGateway, upstream: string): Request {
  const headers = { 'Proxy-Authorization': `Bearer ${token}` }
  return { url: upstream + smallGet.path, method: 'GET', headers, through: { form: 'absolute', port } }
}

const secureGet: Work = {
  ...{ ...smallGet, name: 'tls', about: 'GET, TLS to the upstream', tls: true, perSlice: 1_000, goal: 0 },
}

type Form = (gateway: StartedGateway, to: Intercepted) => Request

/** Calls through the forward proxy, which bench/forward.ts holds against goals. */
function forward(name: string, about: string, work: Work, form: Form): Road {
  return {
    ...{ name, about, work },
    async open({ upstream, cores, nodeOptions = [], root }) {
      const trusted = upstream.certificate === undefined ? {} : { Proxy: { CaFile: upstream.certificate } }
      const setup = { policies: [benchPolicy(100)], settings: { ...forwardSettings, ...trusted }, cores, nodeOptions }
      const started = await startGateway({ ...setup, ...(root === undefined ? {} : { root }) })
      const request = form(started, { upstream: upstream.url, ca: await authorityOf(started) })
      return { request, process: started.process }
    },
  }
}

const absolute: Form = (gateway, { upstream }) => absoluteGet(gateway, upstream)
const fresh: Form = (gateway, to) => asFresh(interceptedGet(gateway, to))
const resumed: Form = (gateway, to) => fresh(gateway, { ...to, resumes: true })
const freshGet: Work = { ...secureGet, fresh: true, connections: 16, perSlice: 80 }

export const forwardRoads: readonly Road[] = [
  forward('absolute', 'the small GET in absolute form', { ...secureGet, tls: false }, absolute),
  forward('intercepted', 'the small GET in a tunnel', secureGet, interceptedGet),
  forward('intercepted-new', 'the same, a new connection each', freshGet, fresh),
  forward('intercepted-resumed', 'the same, TLS resumed', freshGet, resumed),
]
