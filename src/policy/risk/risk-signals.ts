import { mapValues } from '../../base/records.ts'
import type { Zone } from '../language/fields/zone.ts'
import { clockMinutes, inWindow, type TimeWindow } from '../language/operators/ordering.ts'
import type { Facts } from '../request/facts.ts'

/** Every signal: its points unless the setting `Risk:Signals:<name>` says otherwise, and what gives them. */
export const riskSignals = {
  'method-post': { points: 5, meaning: 'POST.' },
  'method-put-patch': { points: 10, meaning: 'PUT and PATCH.' },
  'method-delete': { points: 20, meaning: 'DELETE.' },
  'method-other': { points: 15, meaning: 'Any other method.' },
  'new-host': { points: 20, meaning: 'A host this agent was never allowed to before.' },
  'metadata-address': { points: 60, meaning: 'A link-local or metadata address.' },
  'private-address': { points: 0, meaning: 'A private or loopback address.' },
  'ip-literal-host': { points: 15, meaning: 'A host written as an address.' },
  punycode: { points: 10, meaning: 'An international host name.' },
  'plain-http': { points: 10, meaning: 'No TLS.' },
  'unusual-port': { points: 5, meaning: 'A port other than that of the scheme.' },
  'sensitive-path': { points: 15, meaning: 'Each piece of SensitivePaths in the path, two at most.' },
  'large-body': { points: 10, meaning: 'A body above 1 MB; half of it above 64 KB.' },
  'body-far-above-usual': { points: 15, meaning: 'A body eight times larger than usual for the agent.' },
  'egress-volume': { points: 25, meaning: 'Ten times the bytes of a usual day.' },
  'low-trust': { points: 30, meaning: 'At trust 0, falling to nothing at trust 0.5.' },
  'high-trust': { points: -10, meaning: 'Trust of 0.8 or more.' },
  'recent-denials': { points: 5, meaning: 'Each denial in ten minutes, four at most.' },
  'human-denied': { points: 10, meaning: 'A denial by a reviewer within a day.' },
  'tool-changed': { points: 30, meaning: 'A tool of an MCP server that the agent uses changed within a day.' },
  burst: { points: 15, meaning: 'More than BurstPerMinute requests in a minute.' },
  'outside-hours': { points: 10, meaning: 'Outside Hours.' },
  'secret-in-body': { points: 60, meaning: 'A key, token or private key in the body.' },
  'pii-in-body': { points: 25, meaning: 'Personal data in the body.' },
  'unreadable-body': { points: 10, meaning: 'A body that cannot be read.' },
} as const

export type RiskSignalName = keyof typeof riskSignals

export interface RiskSettings {
  /** A score strictly above sends an allowed request to review. */
  readonly threshold: number
  /** 0 switches a signal off. */
  readonly points: Readonly<Record<RiskSignalName, number>>
  /** Lower-case pieces of a path that make it sensitive. */
  readonly sensitivePaths: readonly string[]
  /** Requests of one agent within a minute above which it is a burst. */
  readonly burstPerMinute: number
  /** When agents are expected to work; absent: always. */
  readonly hours?: { readonly window: TimeWindow; readonly zone: Zone }
  /** Takes the place of the computed score: what-if questions and tests. */
  readonly score?: number
}

export const defaultRisk: RiskSettings = {
  threshold: 0.8,
  points: mapValues(riskSignals, ({ points }) => points),
  sensitivePaths: [
    '/admin',
    '/export',
    '/backup',
    '/secret',
    '/credential',
    '/password',
    '/internal',
    '/debug',
    '/.env',
    '/.git',
  ],
  burstPerMinute: 300,
}

export interface Signal {
  readonly name: RiskSignalName
  /** It reads nothing but the origin and the class of the destination. */
  readonly isOfOrigin?: true
  /** Points that this request gives; below zero for a credit. */
  readonly points: (facts: Facts, settings: RiskSettings) => number
  /** Which detector fired; logged, so never a value of the request. */
  readonly detail?: (facts: Facts) => string | undefined
}

function when(name: RiskSignalName, holds: (facts: Facts, settings: RiskSettings) => boolean): Signal {
  return {
    name,
    points(facts, settings) {
      const value = settings.points[name]
      return value !== 0 && holds(facts, settings) ? value : 0
    },
  }
}

const ofOrigin = (name: RiskSignalName, holds: (facts: Facts) => boolean): Signal => ({
  ...when(name, holds),
  isOfOrigin: true,
})

/** The signal of each method; undefined where there is none. */
const methodSignals: ReadonlyMap<string, RiskSignalName | undefined> = new Map([
  ['GET', undefined],
  ['HEAD', undefined],
  ['OPTIONS', undefined],
  ['POST', 'method-post'],
  ['PUT', 'method-put-patch'],
  ['PATCH', 'method-put-patch'],
  ['DELETE', 'method-delete'],
])

/** The one signal that the method gives. */
export function methodSignal(method: string): RiskSignalName | undefined {
  return methodSignals.has(method) ? methodSignals.get(method) : 'method-other'
}

const kilobyte = 1_024
const farAboveUsual = 8
const farAboveMedian = 10
const middleTrust = 0.5
const goodTrust = 0.8
const maxPatterns = 2
const maxDenials = 4

/** Calls inside the machine or network are no risk by themselves. */
function isLocal(facts: Facts): boolean {
  const kind = facts.destination?.class
  if (kind !== undefined) return kind === 'private' || kind === 'loopback'
  const { host } = facts.request
  return host === 'localhost' || host.endsWith('.localhost')
}

function isMetadata(facts: Facts): boolean {
  const kind = facts.destination?.class
  return kind === 'linkLocal' || kind === 'metadata' || facts.request.host === 'metadata.google.internal'
}

function isIpLiteral(host: string): boolean {
  return host.startsWith('[') || /^\d{1,3}(\.\d{1,3}){3}$/.test(host)
}

function isUnusualPort({ request }: Facts): boolean {
  return request.port !== (request.scheme === 'https' ? 443 : 80)
}

function isNewHost(facts: Facts): boolean {
  return facts.activity !== undefined && !facts.activity.hostSeen(facts.request.host)
}

const searches = new WeakMap<readonly string[], RegExp>()

function searchFor(pieces: readonly string[]): RegExp {
  const known = searches.get(pieces)
  if (known !== undefined) return known
  const literals = pieces.map(piece => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const search = pieces.length === 0 ? /(?!)/ : new RegExp(literals.join('|'), 'i')
  searches.set(pieces, search)
  return search
}

function sensitivePath(facts: Facts, settings: RiskSettings): number {
  const { path: literal, readings } = facts.request
  const all = readings === undefined ? literal : readings.join('\n')
  if (!searchFor(settings.sensitivePaths).test(all)) return 0
  const path = all.toLowerCase()
  const found = settings.sensitivePaths.filter(piece => path.includes(piece))
  return Math.min(maxPatterns, found.length) * settings.points['sensitive-path']
}

function lowTrust(facts: Facts, settings: RiskSettings): number {
  const lacking = middleTrust - facts.agent.trustScore
  return lacking <= 0 ? 0 : Math.round((settings.points['low-trust'] * lacking) / middleTrust)
}

function recentDenials(facts: Facts, settings: RiskSettings): number {
  return Math.min(maxDenials, facts.activity?.deniedLast10m ?? 0) * settings.points['recent-denials']
}

function isBurst(facts: Facts, settings: RiskSettings): boolean {
  return (facts.activity?.requestsLastMinute ?? 0) > settings.burstPerMinute
}

function isOutsideHours(facts: Facts, { hours }: RiskSettings): boolean {
  if (hours === undefined) return false
  return !inWindow(hours.window, clockMinutes(hours.zone.at(facts.request.now).clock))
}

function isHighVolume({ activity }: Facts): boolean {
  // The median costs more than the total, and most agents send nothing on most days.
  if (activity === undefined || activity.bytesToday === 0) return false
  const median = activity.medianBytesPerDay
  return median > 0 && activity.bytesToday > farAboveMedian * median
}

/** Bytes of the body, 0 when it is not known how many. */
function bodyBytes(facts: Facts): number {
  return typeof facts.bodySize === 'number' ? facts.bodySize : 0
}

function largeBody(facts: Facts, settings: RiskSettings): number {
  const points = settings.points['large-body']
  const size = bodyBytes(facts)
  if (size > kilobyte * kilobyte) return points
  return size > 64 * kilobyte ? Math.round(points / 2) : 0
}

function isFarAboveUsual(facts: Facts): boolean {
  const usual = facts.activity?.usualBodyBytes ?? 0
  return usual > 0 && bodyBytes(facts) > farAboveUsual * usual
}

/** Signals of the head, except those of the method. */
export const headSignals: readonly Signal[] = [
  when('new-host', isNewHost),
  ofOrigin('metadata-address', isMetadata),
  ofOrigin('private-address', isLocal),
  ofOrigin('ip-literal-host', facts => isIpLiteral(facts.request.host) && !isLocal(facts)),
  ofOrigin('punycode', facts => facts.request.host.includes('xn--') && !isLocal(facts)),
  ofOrigin('plain-http', facts => facts.request.scheme === 'http' && !isLocal(facts)),
  ofOrigin('unusual-port', facts => isUnusualPort(facts) && !isLocal(facts)),
  { name: 'sensitive-path', points: sensitivePath },
  { name: 'large-body', points: largeBody },
  when('body-far-above-usual', isFarAboveUsual),
  when('egress-volume', isHighVolume),
  { name: 'low-trust', points: lowTrust },
  when('high-trust', facts => facts.agent.trustScore >= goodTrust),
  { name: 'recent-denials', points: recentDenials },
  when('human-denied', facts => (facts.activity?.humanDeniedLast24h ?? 0) > 0),
  when('tool-changed', facts => (facts.activity?.toolChangesLast24h ?? 0) > 0),
  when('burst', isBurst),
  when('outside-hours', isOutsideHours),
]

const unreadableKinds = ['invalid', 'truncated', 'encoded']

const secretOf = (facts: Facts) => facts.body?.secret
const piiOf = (facts: Facts) => facts.body?.pii

/** Signals of the body: first those that find secrets, then the cheap ones that matter most. */
export const bodySignals: readonly Signal[] = [
  { ...when('secret-in-body', facts => secretOf(facts) !== undefined), detail: secretOf },
  { ...when('pii-in-body', facts => piiOf(facts) !== undefined), detail: piiOf },
  when('unreadable-body', facts => unreadableKinds.includes(facts.body?.kind ?? 'none')),
]

export const secretSignals = 1
