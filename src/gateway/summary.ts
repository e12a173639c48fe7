import { existsSync } from 'node:fs'
import { bootstrapFile } from '../agents/bootstrap.ts'
import { isLoopback } from '../base/address.ts'
import { parsePlacePattern } from '../base/host.ts'
import { isAtHost, parseHostAndPort } from '../base/host-port.ts'
import { createOrigin } from '../base/origin.ts'
import { readsUsage } from '../config/budgets.ts'
import type { Config } from '../config/schema.ts'
import { describeCertificate } from '../http/certificate.ts'
import type { Certificate } from '../http/servers.ts'
import { describeAuthority } from '../intercept/authority.ts'
import { createOpenedHosts } from '../intercept/opened-hosts.ts'
import { createProviders } from '../llm/providers.ts'
import { type AuthorityHolder, authorityWarnings } from './authority.ts'
import type { Base } from './base.ts'
import type { Identity } from './identity.ts'
import type { Rules } from './rules.ts'
import { describeStorage, usesPostgres } from './storage.ts'

export interface SummaryParts extends Pick<Base, 'config' | 'baseDirectory' | 'dataDirectory' | 'clock'> {
  readonly certificate: Certificate | undefined
  readonly authority: AuthorityHolder | undefined
  readonly identity: Pick<Identity, 'tokens'>
  readonly rules: Pick<Rules, 'policies'>
  readonly warnings: readonly string[]
}

export type SummaryRow = readonly [string, string]

/** Summary of the configuration at start, for people. */
export function summarise(parts: SummaryParts): readonly SummaryRow[] {
  const { config, certificate, identity, rules, warnings, clock } = parts
  const authority = parts.authority?.current
  const names = rules.policies.book.list().map(({ document }) => document.name)
  const { Threads } = config.System.Server
  const { DenyPrivateNetworks } = config.Egress
  return [
    ...row('Storage', describeStorage(parts)),
    ['Bootstrap', bootstrapText(parts)],
    ...row('Certificate', certificate && describeCertificate(certificate)),
    ...row('CA', authority && describeAuthority(authority)),
    ...row('Threads', Threads === 1 ? undefined : String(Threads)),
    [
      'Policies',
      names.join(', ') || `none: Policy:UnassignedEffect (${config.Policy.UnassignedEffect}) decides every request`,
    ],
    ['Egress', `private and loopback destinations are ${DenyPrivateNetworks ? 'refused' : 'allowed'}`],
    ...row(
      'Virtual hosts',
      config.Hosts.map(({ Host, Upstream }) => `${Host} for ${Upstream}`).join(', ') || undefined,
    ),
    ...row('Mode', config.Policy.Mode === 'observe' ? 'OBSERVE: nothing is refused or held by policy' : undefined),
    ...[
      ...warnings,
      ...hostWarnings(config),
      ...forwardWarnings(config),
      ...credentialWarnings(config),
      ...budgetWarnings(config),
      ...policyWarnings(config, names),
      ...authorityWarnings(authority, clock.now()),
      ...identity.tokens.warnings,
    ].flatMap(warning => row('Warning', warning)),
  ]
}

const row = (name: string, text: string | undefined): SummaryRow[] => (text === undefined ? [] : [[name, text]])

function hostWarnings({ Hosts, System }: Config): readonly string[] {
  const isMissing = Hosts.length > 0 && System.PublicUrl === undefined
  return isMissing
    ? ['Hosts: without System:PublicUrl, answers to held requests on virtual hosts have no Location']
    : []
}

/** A credential cannot be added in a tunnel that is not opened. */
function credentialWarnings(config: Config): readonly string[] {
  const { ForwardProxy, Upstreams } = config
  const hosts = createOpenedHosts({ ...ForwardProxy, ...config.Proxy })
  const closed = Upstreams.flatMap(({ Host = '' }) => {
    const { host, port = 443 } = parsePlacePattern(Host)
    return host.exact === undefined || hosts.opens(createOrigin('https', host.exact, port)) ? [] : [Host]
  })
  return ForwardProxy.Enabled && closed.length > 0
    ? [
        `Upstreams: ${closed.join(', ')} gets no credential in tunnels that are not opened (ForwardProxy:TunnelHosts, Https)`,
      ]
    : []
}

/** With a credential of the gateway, agents spend what the operator pays. */
function budgetWarnings({ Upstreams, Metering, Budgets }: Config): readonly string[] {
  if (!readsUsage({ Budgets })) return []
  const providerAt = createProviders(Metering.Hosts)
  const covering = Budgets.filter(({ Unit }) => Unit !== 'Calls').map(({ Hosts }) => Hosts.map(parseHostAndPort))
  const uncovered = Upstreams.flatMap(({ Host = '' }) => {
    const { host, port = 443 } = parsePlacePattern(Host)
    const origin = host.exact === undefined ? undefined : createOrigin('https', host.exact, port)
    if (origin === undefined || providerAt(origin) === undefined) return []
    return covering.some(hosts => hosts.length === 0 || hosts.some(one => isAtHost(one, origin))) ? [] : [Host]
  })
  return uncovered.length === 0 ? [] : [`Upstreams: no budget of money or tokens covers ${uncovered.join(', ')}`]
}

/** Of a name that no policy has: no request gets the credential, no call is counted. The policy may be made later. */
function policyWarnings({ Upstreams, Budgets }: Config, names: readonly string[]): readonly string[] {
  const named = [
    ...Upstreams.map(({ Host = '', Policy }) => ({
      by: 'Upstreams',
      of: Host,
      policies: Policy === undefined ? [] : [Policy],
    })),
    ...Budgets.map(({ Name, Policies }) => ({ by: 'Budgets', of: Name, policies: Policies })),
  ]
  return named.flatMap(({ by, of, policies }) =>
    policies
      .filter(name => !names.includes(name))
      .map(name => `${by}: ${of} is for the policy ${name}, which is not there`),
  )
}

function forwardWarnings({ ForwardProxy, System }: Config): readonly string[] {
  const isSafe = isLoopback(ForwardProxy.Host) || System.Server.Tls.CertificateFile !== undefined
  return ForwardProxy.Enabled && !isSafe
    ? ['ForwardProxy:Host: tokens come in the clear; set System:Server:Tls, or listen on a loopback address']
    : []
}

/** Where the credential of the first admin is. */
function bootstrapText({ config, dataDirectory }: SummaryParts): string {
  if (config.Security.Bootstrap.ClientSecret !== undefined)
    return 'the credential of the first admin is Security:Bootstrap'
  if (usesPostgres(config)) return 'the credential of the first admin is not in the configuration'
  const file = bootstrapFile(dataDirectory)
  if (existsSync(file)) return `${file} (credential of the first admin)`
  return `${file} is missing; "agent-gateway admin reset" gives the first admin a new credential`
}
