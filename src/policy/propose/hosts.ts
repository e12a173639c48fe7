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
/** The same of top-level domains: `github.co` is not alone in the world, and those of two letters are those of countries. */
const shortestTop = 3

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
  const first = new Map<number, string>()
  const shared = new Set<number>()
  for (const name of names) {
    // Names that differ in a number alone are those of one service.
    const plain = name.replace(/\d+/g, '0')
    for (const key of keysOf(name)) {
      const before = first.get(key)
      if (before === undefined) first.set(key, plain)
      else if (before !== plain) shared.add(key)
    }
  }
  const alike = shared.size === 0 ? [] : [...names].filter(name => keysOf(name).some(key => shared.has(key)))
  const longer = [...names].filter(name => startsWithOne(name, names))
  return new Set([...alike, ...longer])
}

/** `api.example.com.evil.example`, `api.example.com-evil.example` */
function startsWithOne(name: string, names: ReadonlySet<string>): boolean {
  const first = name.indexOf('.')
  return Array.from(name.matchAll(/[.-]/g)).some(({ index }) => index > first && names.has(name.slice(0, index)))
}

/**
 * What alike names have in common: the name as it looks, and each one that lacks a letter of a long part, or of its top-level
 * domain. As numbers: an agent can have
 * thousands of long names, whose million texts would take hundreds of megabytes. Two texts with one number only make a person look.
 */
function keysOf(name: string): readonly number[] {
  const shown = name.replace(/rn/g, 'm').replace(/vv/g, 'w').replace(/0/g, 'o').replace(/[1i]/g, 'l')
  const labels = shown.split('.').map(label => label.replaceAll('-', ''))
  const whole = labels.join('')
  const high = numbersOf(whole, 0x01000193)
  const low = numbersOf(whole, 0x5bd1e995)
  const keyAt = (place: number) => (high[place]! >>> 11) * 2 ** 32 + (low[place]! >>> 0)
  let end = 0
  const lacking = labels.flatMap((label, at) => {
    end += label.length
    const shortest = at === labels.length - 1 ? shortestTop : shortestAlike
    return label.length < shortest ? [] : Array.from(label, (_, place) => keyAt(end - label.length + place))
  })
  // A key of its own: an `i` counts as an `l` above, but `ci` looks like no `d`.
  const round = name.includes('cl') ? keysOf(name.replaceAll('cl', 'd')).slice(0, 1) : []
  return [keyAt(whole.length), ...round, ...lacking]
}

/** For each place the number of the text without the letter there, and last that of the whole text. */
function numbersOf(text: string, base: number): Int32Array {
  const behind = new Int32Array(text.length + 1)
  const powers = new Int32Array(text.length + 1).fill(1)
  for (let at = text.length - 1, power = 1; at >= 0; at--) {
    powers[at] = power
    behind[at] = Math.imul(text.charCodeAt(at), power) + behind[at + 1]!
    power = Math.imul(power, base)
  }
  const numbers = new Int32Array(text.length + 1)
  let before = 0
  for (let at = 0; at < text.length; at++) {
    numbers[at] = Math.imul(before, powers[at]!) + behind[at + 1]!
    before = (Math.imul(before, base) + text.charCodeAt(at)) | 0
  }
  numbers[text.length] = before
  return numbers
}
