import { classifyAddress, literalAddress } from '../../base/address.ts'
import { daysOf, type RecordedRequest } from './template.ts'

/** Why a person looks at a host first. */
export type HostCause = 'address' | 'international name' | 'resembles another host' | 'seen on one day only'

/** A host of an agent, with what makes it suspicious. */
export interface MarkedHost {
  readonly agentId: string
  readonly origin: string
  /** Days on which something was learned from it. */
  readonly days: number
  readonly causes: readonly HostCause[]
}

/** Parts of names that are shorter are alike by chance. */
const shortestAlike = 6

/** The hosts of each agent that a person should look at, by `hostKey`. */
export function markedHosts(eligible: readonly RecordedRequest[]): ReadonlyMap<string, MarkedHost> {
  const marked = new Map<string, MarkedHost>()
  for (const ofAgent of Map.groupBy(eligible, ({ agentId }) => agentId).values()) {
    const byOrigin = Map.groupBy(ofAgent, ({ shape }) => shape.origin)
    const hosts = [...byOrigin].map(([origin, recorded]) => ({ name: new URL(origin).hostname, origin, recorded }))
    const alike = lookAlikes(hosts.map(({ name }) => name))
    for (const { name, origin, recorded } of hosts) {
      const days = daysOf(recorded)
      const causes = [...causesOfName(name)]
      if (alike.has(name)) causes.push('resembles another host')
      if (days < 2) causes.push('seen on one day only')
      const [{ agentId } = { agentId: '' }] = recorded
      if (causes.length > 0) marked.set(hostKey(agentId, origin), { agentId, origin, days, causes })
    }
  }
  return marked
}

export const hostKey = (agentId: string, origin: string): string => `${agentId} ${origin}`

function causesOfName(host: string): readonly HostCause[] {
  const address = literalAddress(host)
  if (address === undefined) return host.includes('xn--') ? ['international name'] : []
  return ['private', 'loopback'].includes(classifyAddress(address)) ? [] : ['address']
}

/** Names that look nearly the same, and those that begin with another one. Which of two is the false one nobody knows. */
function lookAlikes(hosts: readonly string[]): ReadonlySet<string> {
  const names = new Set(hosts.filter(name => literalAddress(name) === undefined))
  const byKey = Map.groupBy(
    [...names].flatMap(name => keysOf(name).map(key => ({ key, name }))),
    ({ key }) => key,
  )
  // Names that differ in a number alone are those of one service.
  const alike = [...byKey.values()].filter(of => new Set(of.map(({ name }) => name.replace(/\d+/g, '0'))).size > 1)
  const longer = [...names].filter(name => startsWithOne(name, names))
  return new Set([...alike.flatMap(of => of.map(({ name }) => name)), ...longer])
}

/** `api.example.com.evil.example` */
function startsWithOne(name: string, names: ReadonlySet<string>): boolean {
  const labels = name.split('.')
  return labels.some((_, count) => count > 1 && names.has(labels.slice(0, count).join('.')))
}

/** What alike names have in common: the name as it looks, and each one that lacks a letter of a long part. */
function keysOf(name: string): readonly string[] {
  const shown = name.replace(/rn/g, 'm').replace(/vv/g, 'w').replace(/0/g, 'o').replace(/[1i]/g, 'l')
  const labels = shown.split('.').map(label => label.replaceAll('-', ''))
  const lacking = labels.flatMap((label, place) =>
    label.length < shortestAlike
      ? []
      : Array.from(label, (_, at) => labels.with(place, label.slice(0, at) + label.slice(at + 1)).join('')),
  )
  return [labels.join(''), ...lacking]
}
