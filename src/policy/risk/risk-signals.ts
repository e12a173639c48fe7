import type { Zone } from '../language/fields/zone.ts'
import { clockMinutes, inWindow, type Window } from '../language/operators/ordering.ts'
import type { Facts } from '../request/facts.ts'

/** Points of every signal; 0 switches it off. Their names are those of `Risk:Signals:<name>`. */
export const defaultRiskPoints = {
  'method-post': 5,
  'method-put-patch': 10,
  'method-delete': 20,
  'method-other': 15,
  'new-host': 20,
  'metadata-address': 60,
  'private-address': 0,
  'ip-literal-host': 15,
  punycode: 10,
  'plain-http': 10,
  'unusual-port': 5,
  /** For each pattern found, two at most. */
  'sensitive-path': 15,
  /** Half of it above 64 KB, all above 1 MB. */
  'large-body': 10,
  'body-far-above-usual': 15,
  'egress-volume': 25,
  /** At trust 0; falls in a line to nothing at trust 0.5. */
  'low-trust': 30,
  'high-trust': -10,
  /** For each policy denial in ten minutes, four at most. */
  'recent-denials': 5,
  'human-denied': 10,
  burst: 15,
  'outside-hours': 10,
  'secret-in-body': 60,
  'pii-in-body': 25,
  'unreadable-body': 10,
} as const

export type RiskSignalName = keyof typeof defaultRiskPoints

export interface RiskSettings {
  /** A score strictly above sends an allowed request to review. */
  readonly threshold: number
  readonly points: Readonly<Record<RiskSignalName, number>>
  /** Lower-case pieces of a path that make it sensitive. */
  readonly sensitivePaths?: readonly string[]
  /** Requests of one agent within a minute above which it is a burst; 300. */
  readonly burstPerMinute?: number
  /** When agents are expected to work; absent: always. */
  readonly hours?: { readonly window: Window; readonly zone: Zone }
  /** Takes the place of the computed score: what-if questions and tests. */
  readonly score?: number
}

const defaultSensitivePaths: readonly string[] = [
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
]

export const defaultRiskSettings: RiskSettings = {
  threshold: 0.8,
  points: defaultRiskPoints,
}

export interface Signal {
  readonly name: RiskSignalName
  /** Points that this request gives; below zero for a credit. */
  readonly points: (facts: Facts, settings: RiskSettings) => number
  /** Which detector fired; logged, so never a value of the request. */
  readonly detail?: (facts: Facts) => string | undefined
}

function when(name: RiskSignalName, holds: (facts: Facts) => boolean): Signal {
  return {
    name,
    points(facts, settings) {
      const value = settings.points[name]
      return value !== 0 && holds(facts) ? value : 0
    },
  }
}

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
const mostPatterns = 2
const mostDenials = 4
const defaultBurst = 300

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

/** One search for all pieces of a list. */
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
  const pieces = settings.sensitivePaths ?? defaultSensitivePaths
  const { path: literal, readings } = facts.request
  const all = readings === undefined ? literal : readings.join('\n')
  if (!searchFor(pieces).test(all)) return 0
  const path = all.toLowerCase()
  const found = pieces.filter(piece => path.includes(piece))
  return Math.min(mostPatterns, found.length) * settings.points['sensitive-path']
}

function lowTrust(facts: Facts, settings: RiskSettings): number {
  const lacking = middleTrust - facts.agent.trustScore
  return lacking <= 0 ? 0 : Math.round((settings.points['low-trust'] * lacking) / middleTrust)
}

function recentDenials(facts: Facts, settings: RiskSettings): number {
  return Math.min(mostDenials, facts.activity?.deniedLast10m ?? 0) * settings.points['recent-denials']
}

function isBurst(facts: Facts, settings: RiskSettings): boolean {
  return (facts.activity?.requestsLastMinute ?? 0) > (settings.burstPerMinute ?? defaultBurst)
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

/** Those of the head, beside the one of the method. */
export const headSignals: readonly Signal[] = [
  when('new-host', isNewHost),
  when('metadata-address', isMetadata),
  when('private-address', isLocal),
  when('ip-literal-host', facts => isIpLiteral(facts.request.host) && !isLocal(facts)),
  when('punycode', facts => facts.request.host.includes('xn--') && !isLocal(facts)),
  when('plain-http', facts => facts.request.scheme === 'http' && !isLocal(facts)),
  when('unusual-port', facts => isUnusualPort(facts) && !isLocal(facts)),
  { name: 'sensitive-path', points: sensitivePath },
  { name: 'large-body', points: largeBody },
  when('body-far-above-usual', isFarAboveUsual),
  when('egress-volume', isHighVolume),
  { name: 'low-trust', points: lowTrust },
  when('high-trust', facts => facts.agent.trustScore >= goodTrust),
  { name: 'recent-denials', points: recentDenials },
  when('human-denied', facts => (facts.activity?.humanDeniedLast24h ?? 0) > 0),
  { name: 'burst', points: (facts, settings) => (isBurst(facts, settings) ? settings.points.burst : 0) },
  {
    name: 'outside-hours',
    points: (facts, settings) => (isOutsideHours(facts, settings) ? settings.points['outside-hours'] : 0),
  },
]

const unreadableKinds = ['invalid', 'truncated', 'encoded']

const secretOf = (facts: Facts) => facts.body?.secret
const piiOf = (facts: Facts) => facts.body?.pii

/** Those that find secrets come first, then what costs least and can matter most. */
export const bodySignals: readonly Signal[] = [
  { ...when('secret-in-body', facts => secretOf(facts) !== undefined), detail: secretOf },
  { ...when('pii-in-body', facts => piiOf(facts) !== undefined), detail: piiOf },
  when('unreadable-body', facts => unreadableKinds.includes(facts.body?.kind ?? 'none')),
]

/** So many of them find secrets. */
export const secretSignals = 1
