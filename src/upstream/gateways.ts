import { networkInterfaces } from 'node:os'
import { canonicalAddress, classifyAddress } from '../base/address.ts'

/** Where this gateway and the others of the fleet listen: agents must not reach their APIs by way of the proxy. */
export class Gateways {
  /** Ports of this gateway. */
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
