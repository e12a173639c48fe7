import { networkInterfaces } from 'node:os'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { AddressClass } from './address.ts'
import { classifyAddress, inRange, rangeSet, unmapped } from './address.ts'
import type { Origin } from './origin.ts'

export interface EgressSettings {
  readonly DenyPrivateNetworks: boolean
  readonly AllowHosts: readonly string[]
  readonly DenyHosts: readonly string[]
  readonly AllowCidrs: readonly string[]
  readonly DenyCidrs: readonly string[]
  readonly SelfUrls: readonly string[]
}

/** Where the gateway may connect to (security: own listeners, metadata services, special ranges; spec 4.4). */
export interface Egress {
  /** Refuses by name alone, before any look-up. */
  checkHost(origin: Origin): Refusal | undefined
  /** Refuses when any of the addresses is refused: none is picked out as the good one. */
  checkAddresses(origin: Origin, addresses: readonly string[]): Refusal | undefined
  /** Told once the listeners are open. */
  setListeners(ports: readonly number[]): void
}

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

export function createEgress(settings: EgressSettings): Egress {
  const allowed = rangeSet(settings.AllowCidrs)
  const denied = rangeSet(settings.DenyCidrs)
  const selfOrigins = new Set(settings.SelfUrls.map(url => new URL(url).origin))
  let ports: ReadonlySet<number> = new Set()
  // One verdict for each answer of the resolver and port: an answer is valid for seconds, and then it is a new one.
  let verdicts = new WeakMap<readonly string[], Map<number, Refusal | undefined>>()

  const refuses = (ip: string): boolean => {
    if (inRange(denied, ip)) return true
    if (inRange(allowed, ip)) return false
    const kind = classifyAddress(ip)
    if (alwaysRefused.has(kind)) return true
    return settings.DenyPrivateNetworks && (kind === 'private' || kind === 'loopback')
  }

  const refuseAny = (addresses: readonly string[], port: number): Refusal | undefined => {
    const isRefused = (ip: string) => (ports.has(port) && isOwnAddress(ip)) || refuses(ip)
    return addresses.some(address => isRefused(unmapped(address))) ? refuse('egress_denied') : undefined
  }

  return {
    checkHost(origin) {
      const { host } = origin
      if (selfOrigins.has(origin.key)) return refuse('egress_denied')
      if (settings.DenyHosts.some(pattern => hostMatches(pattern, host))) return refuse('egress_denied')
      if (settings.AllowHosts.length > 0 && !settings.AllowHosts.some(pattern => hostMatches(pattern, host))) {
        return refuse('egress_denied')
      }
      return metadataHosts.includes(host) ? refuse('egress_denied') : undefined
    },
    checkAddresses({ port }, addresses) {
      let byPort = verdicts.get(addresses)
      if (byPort === undefined) {
        byPort = new Map()
        verdicts.set(addresses, byPort)
      }
      if (!byPort.has(port)) byPort.set(port, refuseAny(addresses, port))
      return byPort.get(port)
    },
    setListeners(open) {
      ports = new Set(open)
      verdicts = new WeakMap()
    },
  }
}

/** `example.com` exactly, `*.example.com` any name below it, `.example.com` either. */
export function hostMatches(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase()
  if (wanted.startsWith('*.')) return host.endsWith(wanted.slice(1)) && host.length > wanted.length - 1
  if (wanted.startsWith('.')) return host.endsWith(wanted) || host === wanted.slice(1)
  return host === wanted
}

function isOwnAddress(ip: string): boolean {
  const kind = classifyAddress(ip)
  if (kind === 'loopback' || kind === 'unspecified') return true
  return Object.values(networkInterfaces()).some(list => list?.some(entry => unmapped(entry.address) === ip))
}
