/** Destinations to which the gateway may connect; its own addresses and those of its fleet are none. */
import { networkInterfaces } from 'node:os'
import { type AddressClass, AddressRanges, canonicalAddress, classifyAddress } from '../base/address.ts'
import { matchesAnyHost, parseHostPatterns } from '../base/host.ts'
import type { Origin } from '../base/origin.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'

export type EgressSettings = Config['Egress'] & {
  /** Address of the collector of traces: agents could forge them. */
  readonly collector?: string | undefined
}

/** Destinations to which the gateway may connect (security: own listeners, metadata services, special ranges; spec 4.4). */
export type Egress = ReturnType<typeof createEgress>

const metadataHosts = ['metadata.google.internal', 'metadata.goog', 'instance-data']

/** Refused under every setting but an entry of AllowCidrs. */
const alwaysRefused: ReadonlySet<AddressClass> = new Set([
  'metadata',
  'linkLocal',
  'unspecified',
  'multicast',
  'reserved',
  'embedded',
])

const rulesOf = ({ collector, ...settings }: EgressSettings) => ({
  collector: collector === undefined ? undefined : collectorAt(new URL(collector)),
  denyInside: settings.DenyPrivateNetworks,
  allowed: AddressRanges.of(settings.AllowCidrs),
  denied: AddressRanges.of(settings.DenyCidrs),
  allowedHosts: parseHostPatterns(settings.AllowHosts),
  deniedHosts: parseHostPatterns(settings.DenyHosts),
  selfOrigins: new Set([...settings.SelfUrls, ...(collector === undefined ? [] : [collector])].map(originIn)),
  selfHosts: new Set(settings.SelfUrls.map(url => new URL(url).hostname)),
})

type EgressRules = ReturnType<typeof rulesOf>

const originIn = (url: string): string => new URL(url).origin

/** Another address of this machine leads to the same collector. */
function collectorAt(url: URL): Gateways {
  const place = new Gateways()
  if (url.hostname === 'localhost') url.hostname = '127.0.0.1'
  place.setPeers([url.origin])
  return place
}

function hostProblem(
  { key, host }: Origin,
  { selfOrigins, deniedHosts, allowedHosts }: EgressRules,
): Refusal | undefined {
  if (selfOrigins.has(key)) return denial('the origin is in Egress:SelfUrls')
  if (isDenied(host, { deniedHosts })) return denial('the host is in Egress:DenyHosts')
  if (allowedHosts.length > 0 && !matchesAnyHost(allowedHosts, host)) {
    return denial('the host is not in Egress:AllowHosts')
  }
  return metadataHosts.includes(host) ? denial('the host is a metadata service') : undefined
}

const isDenied = (host: string, { deniedHosts }: Pick<EgressRules, 'deniedHosts'>): boolean =>
  deniedHosts.length > 0 && matchesAnyHost(deniedHosts, host)

function addressProblem(ip: string, { denied, allowed, denyInside }: EgressRules): string | undefined {
  if (denied.hasCanonical(ip)) return `${ip} is in Egress:DenyCidrs`
  if (allowed.hasCanonical(ip)) return undefined
  const kind = classifyAddress(ip)
  if (alwaysRefused.has(kind)) return `${ip} is ${kind}`
  const isInside = kind === 'private' || kind === 'loopback'
  return denyInside && isInside ? `${ip} is ${kind} (Egress:DenyPrivateNetworks)` : undefined
}

export function createEgress(settings: EgressSettings) {
  let rules = rulesOf(settings)
  const gateways = new Gateways()
  // One verdict for each answer of the resolver and port. An answer is valid for seconds; the next one is a new object.
  let verdicts = new WeakMap<readonly string[], Map<number, Refusal | undefined>>()

  const problemOf = (ip: string, port: number): string | undefined => {
    const gateway = gateways.at(ip, port)
    if (gateway !== undefined) return `${ip} is ${gateway}`
    return rules.collector?.at(ip, port) === undefined ? addressProblem(ip, rules) : `${ip} is the collector of traces`
  }

  const refuseAny = (addresses: readonly string[], port: number): Refusal | undefined => {
    for (const address of addresses) {
      const problem = problemOf(canonicalAddress(address) ?? address, port)
      if (problem !== undefined) return denial(problem)
    }
    return undefined
  }

  return {
    /** Refuses by name alone, before any look-up. */
    checkHost: (origin: Origin) => hostProblem(origin, rules),
    /**
     * Whether a shorter name may stand for this one, which the search domains of the system complete: it would be called although
     * its own name is refused.
     */
    mayFind: (name: string) => !rules.selfHosts.has(name) && !isDenied(name, rules) && !metadataHosts.includes(name),
    /** Refuses when any of the addresses is refused: it does not pick an allowed one. */
    checkAddresses({ port }: Origin, addresses: readonly string[]): Refusal | undefined {
      let byPort = verdicts.get(addresses)
      if (byPort === undefined) {
        byPort = new Map()
        verdicts.set(addresses, byPort)
      }
      if (!byPort.has(port)) byPort.set(port, refuseAny(addresses, port))
      return byPort.get(port)
    },
    /** Called once the listeners are open. */
    setListeners(open: readonly number[]) {
      gateways.ownPorts = new Set(open)
      verdicts = new WeakMap()
    },
    /** URLs at which other gateways of the fleet listen, each with an IP address. */
    setPeers(urls: readonly string[]) {
      gateways.setPeers(urls)
      verdicts = new WeakMap()
    },
    /** Makes rules of other settings; the result puts them in force. */
    prepare(next: EgressSettings): () => void {
      const made = rulesOf(next)
      return () => {
        rules = made
        verdicts = new WeakMap()
      }
    },
  }
}

/** The agent learns nothing of addresses and settings. */
const denial = (cause: string): Refusal => refuse('egress_denied', undefined, { cause })

/** Where this gateway and the others of the fleet listen: agents must not reach their APIs by way of the proxy. */
class Gateways {
  ownPorts: ReadonlySet<number> = new Set()
  /** Addresses and ports of the others. */
  #peers: ReadonlySet<string> = new Set()
  /** Ports of gateways on this machine, which has more addresses than the one that they publish. */
  #neighbours: ReadonlySet<number> = new Set()

  /** @param urls each with an IP address */
  setPeers(urls: readonly string[]): void {
    const all = urls.flatMap(endpointsIn)
    this.#peers = new Set(all.map(({ ip, port }) => `${ip} ${port}`))
    this.#neighbours = new Set(all.flatMap(({ ip, port }) => (isOwnAddress(ip) ? [port] : [])))
  }

  /** Which gateway listens there, for people; undefined when none does. */
  at(ip: string, port: number): string | undefined {
    if (this.ownPorts.has(port) && isOwnAddress(ip)) return 'the gateway itself'
    const isPeer = this.#peers.has(`${ip} ${port}`) || (this.#neighbours.has(port) && isOwnAddress(ip))
    return isPeer ? 'another gateway' : undefined
  }
}

/** Addresses in an unknown form, of another version, are left out. */
function endpointsIn(text: string): { readonly ip: string; readonly port: number }[] {
  const url = URL.parse(text)
  const ip = url === null ? undefined : canonicalAddress(url.hostname.replace(/^\[|\]$/g, ''))
  return url === null || ip === undefined ? [] : [{ ip, port: Number(url.port || defaultPorts[url.protocol]) }]
}

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

function isOwnAddress(ip: string): boolean {
  const kind = classifyAddress(ip)
  if (kind === 'loopback' || kind === 'unspecified') return true
  return Object.values(networkInterfaces()).some(list => list?.some(entry => canonicalAddress(entry.address) === ip))
}
