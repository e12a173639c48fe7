/** What the forward proxy is measured beside: `/proxy` of the same gateway, and programs that open TLS as it does. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startHaproxy } from '../peers/haproxy.ts'
import { startMitmproxy } from '../peers/mitmproxy.ts'
import { startSquid } from '../peers/squid.ts'
import { absoluteGet, asFresh, authorityOf, basic, forwardSettings, interceptedGet } from './forward-gets.ts'
import { type StartedGateway, signingSecret, startGateway } from './gateway.ts'
import type { Request } from './load.ts'
import type { Cores } from './machine.ts'
import { type Running, temporaryFolder, versionOf } from './processes.ts'
import type { Contestant } from './rounds.ts'
import { benchPolicy, denyRules } from './rules.ts'
import { makeCertificate, startNodeUpstream, startTlsUpstream, type Upstream } from './upstream.ts'
import { requestOf, smallGet } from './works.ts'

/** All that runs. */
export interface ForwardSetup {
  readonly gateway: StartedGateway
  /** PEM file with the authority of the gateway. */
  readonly ca: string
  readonly plain: Upstream
  readonly secure: Upstream
  /** Other programs, by their names; those that are not installed are missing. */
  readonly peers: Readonly<Record<string, ForwardPeer>>
}

export interface ForwardPeer {
  readonly version: string
  readonly process: Running
  readonly request: Request
}

export async function startForwardSetup(cores: Cores, built: boolean): Promise<ForwardSetup> {
  const [plain, secure] = [await startNodeUpstream(cores.others), await startTlsUpstream(cores.others)]
  const settings = { ...forwardSettings, Proxy: { CaFile: secure.certificate } }
  const gateway = await startGateway({ policies: [benchPolicy(100)], cores: cores.proxy, built, settings })
  return {
    gateway,
    ca: await authorityOf(gateway),
    plain,
    secure,
    peers: await startPeers({ gateway, secure }, cores.proxy),
  }
}

const password = 'password'

async function startPeers(
  { gateway, secure }: Pick<ForwardSetup, 'gateway' | 'secure'>,
  cores: string | undefined,
): Promise<ForwardSetup['peers']> {
  const peers: Record<string, ForwardPeer> = {}
  const trusted = secure.certificate ?? ''
  const url = secure.url + smallGet.path
  const haproxy = await versionOf(['haproxy', '-v'])
  if (haproxy !== undefined) {
    const { key, certificate } = await makeCertificate()
    const both = join(temporaryFolder(), 'both.pem')
    writeFileSync(both, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'))
    const setup = { upstream: secure, secret: signingSecret, rules: denyRules(100), certificate: both }
    const { port, process } = await startHaproxy(setup, cores)
    const proxied = { proxy: `https://127.0.0.1:${port}`, upstream: secure.url, token: gateway.token }
    const through = { form: 'secure', port, ca: certificate } as const
    peers['haproxy'] = { version: haproxy, process, request: { ...requestOf(smallGet, proxied), through } }
  }
  const mitmproxy = await versionOf(['mitmdump', '--version'])
  if (mitmproxy !== undefined) {
    const { port, ca, process } = await startMitmproxy({ trusted, password }, cores)
    const headers = { 'Proxy-Authorization': basic(`bench:${password}`) }
    const through = { form: 'tunnel', port, ca, headers } as const
    peers['mitmproxy'] = { version: mitmproxy, process, request: { url, method: 'GET', headers: {}, through } }
  }
  const squid = await versionOf(['squid', '-v'])
  if (squid !== undefined) {
    const { port, ca, process } = await startSquid({ trusted }, cores)
    const through = { form: 'tunnel', port, ca } as const
    peers['squid'] = { version: squid, process, request: { url, method: 'GET', headers: {}, through } }
  }
  return peers
}

/** Requests in a tunnel of the gateway. */
export const intercepted = ({ gateway, ca, secure }: ForwardSetup, resumes = false): Request =>
  interceptedGet(gateway, { upstream: secure.url, ca, resumes })

const underProxy = ({ gateway }: ForwardSetup, { url }: Upstream): Request =>
  requestOf(smallGet, { proxy: gateway.url, upstream: url, token: gateway.token })

/** Contestants whose slices take turns, and how many requests a slice has. */
export interface ForwardGroup {
  readonly about: string
  readonly contestants: readonly Contestant[]
  readonly connections: number
  readonly perSlice: number
}

export function forwardGroups(setup: ForwardSetup): readonly ForwardGroup[] {
  const { gateway, plain, secure, peers } = setup
  const own = (name: string, request: Request): Contestant => ({ name, request, process: gateway.process })
  const others = (form: (request: Request) => Request) =>
    Object.entries(peers).map(([name, { request, process }]) => ({ name, request: form(request), process }))
  const slow = Object.keys(peers).some(name => name === 'mitmproxy')
  return [
    {
      about: 'kept connections, https upstream',
      contestants: [
        own('/proxy', underProxy(setup, secure)),
        own('intercepted', intercepted(setup)),
        ...others(one => one),
      ],
      connections: 16,
      perSlice: slow ? 200 : 1_000,
    },
    {
      about: 'kept connections, http upstream',
      contestants: [own('/proxy', underProxy(setup, plain)), own('absolute form', absoluteGet(gateway, plain.url))],
      connections: 16,
      perSlice: 1_000,
    },
    {
      about: 'a new connection each, https upstream',
      contestants: [
        own('/proxy', asFresh(underProxy(setup, secure))),
        own('intercepted', asFresh(intercepted(setup))),
        own('intercepted, resumed', asFresh(intercepted(setup, true))),
        ...others(asFresh),
      ],
      connections: 16,
      perSlice: 80,
    },
  ]
}
