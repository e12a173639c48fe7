/**
 * Recent activity of each agent, for rules and the risk score. Agents, their hosts and the buckets of counts are bounded;
 * an agent that was idle for eight days is forgotten, and a restart forgets all.
 */
import type { Activity } from '../base/activity.ts'
import { forgetOldest } from '../base/records.ts'
import { ActivityDelta, type SentBytes } from './activity-delta.ts'

/** Events of an agent that have a time and nothing else. */
export type ActivityKind = 'request' | 'denied' | 'held' | 'humanDenied' | 'toolChanged'

/** All times are wall clock milliseconds since the epoch. */
export type ActivityLog = ReturnType<typeof createActivityLog>

/** Maximum of agents that are remembered, and of hosts of each. */
export interface ActivityLimits {
  readonly agents: number
  readonly hostsPerAgent: number
}

const usualLimits: ActivityLimits = { agents: 20_000, hostsPerAgent: 256 }

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const daysKept = 8
/** Weight of the newest body in the moving average. */
const newestShare = 0.1

/** @param onDelta called with each delta for others when it begins; it grows until its `end` */
export function createActivityLog(limits = usualLimits, onDelta?: (delta: ActivityDelta) => void) {
  const logs = new AgentLogs(limits)
  // On the path of each request: the delta is in the log of the agent, so that no object is made.
  const deltaOf = (log: AgentLog, agentId: string, now: number): ActivityDelta | undefined => {
    if (log.delta === undefined && onDelta !== undefined) {
      log.delta = new ActivityDelta(agentId, log)
      onDelta(log.delta)
    }
    log.delta?.touch(now)
    return log.delta
  }
  const noted = (kind: ActivityKind) => (agentId: string, now: number) => {
    const log = logs.touch(agentId, now)
    log[kind].add(now)
    const delta = deltaOf(log, agentId, now)
    if (delta !== undefined) delta[kind] += 1
  }
  return {
    request: noted('request'),
    denied: noted('denied'),
    held: noted('held'),
    humanDenied: noted('humanDenied'),
    /** A tool of an MCP server differs from what the agent saw before. */
    toolChanged: noted('toolChanged'),
    sent(agentId: string, to: SentBytes, now: number) {
      const log = logs.touch(agentId, now)
      if (log.send(to, now, 1)) deltaOf(log, agentId, now)?.send(to)
    },
    /** Adds what was noted in another thread or gateway, `times` times; it is not sent on. */
    add(agentId: string, what: ActivityKind | SentBytes, at: number, times: number) {
      const log = logs.touch(agentId, at)
      if (typeof what === 'string') log[what].add(at, times)
      else log.send(what, at, times)
    },
    of: (agentId: string, now: number) => new ActivityView(logs.agents.get(agentId), now),
    /** Forgets agents that were idle for eight days. */
    sweep: (now: number) => logs.sweep(now),
    get size() {
      return logs.agents.size
    },
  }
}

class AgentLogs {
  /** In order of last use: the first is forgotten first. */
  readonly agents = new Map<string, AgentLog>()
  readonly #limits: ActivityLimits

  constructor(limits: ActivityLimits) {
    this.#limits = limits
  }

  touch(agentId: string, now: number): AgentLog {
    const log = this.agents.get(agentId) ?? new AgentLog(this.#limits.hostsPerAgent)
    // Moving an entry to the end of a map is slow: an order to the minute is enough.
    if (now - log.movedAt > minute) {
      log.movedAt = now
      this.agents.delete(agentId)
      this.agents.set(agentId, log)
      forgetOldest(this.agents, this.#limits.agents)
    }
    log.lastUse = now
    return log
  }

  sweep(now: number): void {
    for (const [agentId, log] of this.agents) {
      if (now - log.lastUse <= daysKept * day) return
      this.agents.delete(agentId)
    }
  }
}

class AgentLog implements Readonly<Record<ActivityKind, SlidingCount>> {
  readonly request = new SlidingCount(minute, 12)
  readonly denied = new SlidingCount(10 * minute, 10)
  readonly held = new SlidingCount(day, 24)
  readonly humanDenied = new SlidingCount(day, 24)
  readonly toolChanged = new SlidingCount(day, 24)
  readonly bytes = new SlidingCount(daysKept * day, daysKept)
  /** Hosts, each with the time when others were last notified of it. */
  readonly hosts = new Map<string, number>()
  readonly #maxHosts: number
  usualBodyBytes = 0
  lastUse = 0
  /** When it was last put to the end of the order of use. */
  movedAt = Number.NEGATIVE_INFINITY
  delta: ActivityDelta | undefined = undefined

  constructor(maxHosts: number) {
    this.#maxHosts = maxHosts
  }

  /**
   * Requests to one host with equal bodies.
   *
   * @returns whether others must be notified: of all bodies, and of each host again after a minute, since a gateway that
   * starts knows none
   */
  send({ host, bytes }: SentBytes, now: number, times: number): boolean {
    // The order of use matters only once one must be forgotten.
    const isFull = this.hosts.size >= this.#maxHosts
    const isDue = isFull || now - (this.hosts.get(host) ?? Number.NEGATIVE_INFINITY) > minute
    if (isFull) this.hosts.delete(host)
    if (isDue) {
      this.hosts.set(host, now)
      forgetOldest(this.hosts, this.#maxHosts)
    }
    if (bytes <= 0) return isDue
    this.bytes.add(now, bytes * times)
    const usual = this.usualBodyBytes
    const share = times === 1 ? newestShare : 1 - (1 - newestShare) ** times
    this.usualBodyBytes = usual === 0 ? bytes : usual + share * (bytes - usual)
    return true
  }
}

/** Below any count. */
const unread = -1

/**
 * The activity as one request sees it. A count is kept once it was read: the reason of a decision must show the count that
 * the decision used, even if other requests end in between.
 */
class ActivityView implements Activity {
  readonly #log: AgentLog | undefined
  readonly #now: number
  #requestsLastMinute = unread
  #deniedLast10m = unread
  #hitlLast24h = unread
  #humanDeniedLast24h = unread
  #toolChangesLast24h = unread
  #bytesToday = unread
  #medianBytesPerDay = unread
  #usualBodyBytes = unread
  #host: string | undefined
  #hostSeen = false

  constructor(log: AgentLog | undefined, now: number) {
    this.#log = log
    this.#now = now
  }

  get requestsLastMinute(): number {
    if (this.#requestsLastMinute === unread) this.#requestsLastMinute = this.#log?.request.total(this.#now) ?? 0
    return this.#requestsLastMinute
  }

  get deniedLast10m(): number {
    if (this.#deniedLast10m === unread) this.#deniedLast10m = this.#log?.denied.total(this.#now) ?? 0
    return this.#deniedLast10m
  }

  get hitlLast24h(): number {
    if (this.#hitlLast24h === unread) this.#hitlLast24h = this.#log?.held.total(this.#now) ?? 0
    return this.#hitlLast24h
  }

  get humanDeniedLast24h(): number {
    if (this.#humanDeniedLast24h === unread) this.#humanDeniedLast24h = this.#log?.humanDenied.total(this.#now) ?? 0
    return this.#humanDeniedLast24h
  }

  get toolChangesLast24h(): number {
    if (this.#toolChangesLast24h === unread) this.#toolChangesLast24h = this.#log?.toolChanged.total(this.#now) ?? 0
    return this.#toolChangesLast24h
  }

  get bytesToday(): number {
    if (this.#bytesToday === unread) this.#bytesToday = this.#log?.bytes.at(this.#now, 0) ?? 0
    return this.#bytesToday
  }

  get medianBytesPerDay(): number {
    if (this.#medianBytesPerDay === unread)
      this.#medianBytesPerDay = this.#log === undefined ? 0 : medianPerDay(this.#log.bytes, this.#now)
    return this.#medianBytesPerDay
  }

  get usualBodyBytes(): number {
    if (this.#usualBodyBytes === unread) this.#usualBodyBytes = this.#log?.usualBodyBytes ?? 0
    return this.#usualBodyBytes
  }

  /** Kept for one host: a request asks about its own. */
  hostSeen(host: string): boolean {
    if (this.#host !== host) {
      this.#host = host
      this.#hostSeen = this.#log?.hosts.has(host) ?? false
    }
    return this.#hostSeen
  }
}

/** Median of the days before today on which bytes were sent. */
function medianPerDay(bytes: SlidingCount, now: number): number {
  const known: number[] = []
  for (let ago = 1; ago < daysKept; ago++) {
    const count = bytes.at(now, ago)
    if (count > 0) known.push(count)
  }
  known.sort((left, right) => left - right)
  return known[Math.floor(known.length / 2)] ?? 0
}

/** Counts events of a window in buckets. An event is counted for at least the window and at most one bucket more. */
class SlidingCount {
  readonly #width: number
  readonly #counts: Float64Array
  /** Sum of all buckets, kept up to date: totals are read more often than buckets expire. */
  #sum = 0
  #newest = 0

  constructor(window: number, buckets: number) {
    this.#width = window / buckets
    this.#counts = new Float64Array(buckets + 1)
  }

  add(now: number, amount = 1): void {
    const bucket = this.#advance(now)
    this.#counts[bucket % this.#counts.length]! += amount
    this.#sum += amount
  }

  total(now: number): number {
    this.#advance(now)
    return this.#sum
  }

  /** Count of the bucket `back` before the present one. */
  at(now: number, back: number): number {
    const bucket = this.#advance(now) - back
    return bucket < 0 ? 0 : this.#counts[bucket % this.#counts.length]!
  }

  /** Empties the buckets that have expired. After the clock was set back, events count into the newest bucket. */
  #advance(now: number): number {
    const bucket = Math.floor(now / this.#width)
    if (bucket <= this.#newest) return this.#newest
    const steps = Math.min(bucket - this.#newest, this.#counts.length)
    for (let step = 0; step < steps; step++) {
      const place = (bucket - step) % this.#counts.length
      this.#sum -= this.#counts[place]!
      this.#counts[place] = 0
    }
    this.#newest = bucket
    return bucket
  }
}
