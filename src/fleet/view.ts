/** All gateways, as one of them sees them. */
import type { MemberRow, ObservedPeer } from './peers.ts'

/** What a gateway knows of all of them. */
export interface FleetReading {
  /** UUID of this gateway. */
  readonly self: string
  readonly peers: readonly ObservedPeer<MemberRow>[]
  /** Number of the last change that this gateway knows of, and of the last one that is in force here. */
  readonly newest: number
  readonly applied: number
  /** Time that the last turn took, milliseconds. */
  readonly turnMs: number
  /** Time after which a gateway that began no turn has stopped to serve, milliseconds. */
  readonly fencedAfter: number
  /** Steady time of this reading, by the clock of `since`, milliseconds. */
  readonly at: number
}

/**
 * Loading: it does not serve yet. Silent: it has taken no turn for some time, but may still serve. Fenced: it does not
 * serve, because it may lack the latest changes.
 */
export type MemberState = 'Serving' | 'Loading' | 'Silent' | 'Fenced'

export interface MemberView {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly addresses: readonly string[]
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly lastSeenAt: number
  readonly state: MemberState
  /** Changes that are not in force there; null while it loads. */
  readonly lag: number | null
  /** What differs from this gateway but should not, for people. */
  readonly differs: readonly string[]
  readonly isThis: boolean
}

/** All gateways, and the changes that they should have. */
export interface FleetView {
  /** Number of the last change. */
  readonly newest: number
  /** Sorted by name. */
  readonly members: readonly MemberView[]
}

/** When this gateway looks, milliseconds since 1970, and whether it may serve. */
export interface Instant {
  readonly now: number
  readonly isOpen: boolean
}

/** A gateway takes two turns in a second. One that took none for so long is silent, milliseconds. */
const silentMs = 2_000

export function viewFleet(reading: FleetReading, instant: Instant): FleetView {
  const self = reading.peers.find(({ row }) => row.id === reading.self)
  const members = reading.peers
    .map(peers => viewMember(peers, self?.row, reading, instant))
    .sort((left, right) => (left.name + left.id < right.name + right.id ? -1 : 1))
  return { newest: Math.max(0, reading.newest), members }
}

/** Whether this gateway does what only one of them does: the one that has served longest. */
export function leads({ members }: Pick<FleetView, 'members'>): boolean {
  const serving = members.filter(({ state, isThis }) => isThis || state === 'Serving')
  const [first] = serving.sort((left, right) => left.startedAt - right.startedAt || (left.id < right.id ? -1 : 1))
  return first?.isThis ?? true
}

function viewMember(
  { row, since }: ObservedPeer<MemberRow>,
  self: MemberRow | undefined,
  reading: FleetReading,
  { now, isOpen }: Instant,
): MemberView {
  const { id, name, version, addresses, started: startedAt } = row
  const isThis = id === reading.self
  const silent = isThis ? 0 : Math.max(0, reading.at - since)
  const applied = isThis ? reading.applied : row.applied
  const state = isThis ? (isOpen ? 'Serving' : 'Fenced') : stateOf(row, silent, reading)
  return {
    ...{ id, name, version, addresses, startedAt, isThis, state },
    lastSeenAt: now - silent,
    lag: applied < 0 ? null : Math.max(0, reading.newest - applied),
    differs: self === undefined || isThis ? [] : differencesOf(self, row),
  }
}

function stateOf({ applied }: MemberRow, silent: number, { fencedAfter }: FleetReading): MemberState {
  if (silent > fencedAfter) return 'Fenced'
  if (applied < 0) return 'Loading'
  return silent > silentMs ? 'Silent' : 'Serving'
}

/** A gateway that has not published its digests yet differs in nothing. */
function differencesOf({ digests: ours }: MemberRow, { digests: theirs }: MemberRow): readonly string[] {
  if (Object.keys(theirs).length === 0) return []
  return Object.keys(ours).filter(name => ours[name] !== theirs[name])
}
