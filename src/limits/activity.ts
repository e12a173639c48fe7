/**
 * Recent activity of each agent, for rules and the risk score. Agents, their hosts and the buckets of counts are bounded;
 * an agent that was idle for eight days is forgotten, and a restart forgets all.
 */
import type { Activity } from '../base/activity.ts'
import { forgetOldest } from '../base/records.ts'

/** All times are wall clock milliseconds since the epoch. */
export interface ActivityLog {
  of(agentId: string, now: number): Activity
  /** A request came in. */
  request(agentId: string, now: number): void
  /** A policy denied a request. */
  denied(agentId: string, now: number): void
  /** A request was held for review. */
  held(agentId: string, now: number): void
  /** A person denied a request. */
  humanDenied(agentId: string, now: number): void
  /** A tool of an MCP server differs from what the agent saw before. */
  toolChanged(agentId: string, now: number): void
  /** A request went to `host` with a body of `bytes`. */
  sent(agentId: string, to: { readonly host: string; readonly bytes: number }, now: number): void
  /** Forgets agents that were idle for eight days. */
  sweep(now: number): void
  readonly size: number
}

/** Most agents that are remembered, and most hosts of each. */
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

export function createActivityLog(limits = usualLimits): ActivityLog {
  // In order of last use: the first is forgotten first.
  const agents = new Map<string, AgentLog>()

  function touch(agentId: string, now: number): AgentLog {
    const log = agents.get(agentId) ?? new AgentLog(limits.hostsPerAgent)
    // Moving an entry to the end of a map is slow: an order to the minute is enough.
    if (now - log.movedAt > minute) {
      log.movedAt = now
      agents.delete(agentId)
      agents.set(agentId, log)
      forgetOldest(agents, limits.agents)
    }
    log.lastUse = now
    return log
  }

  return {
    of: (agentId, now) => new ActivityView(agents.get(agentId), now),
    request: (agentId, now) => touch(agentId, now).requests.add(now),
    denied: (agentId, now) => touch(agentId, now).denials.add(now),
    held: (agentId, now) => touch(agentId, now).held.add(now),
    humanDenied: (agentId, now) => touch(agentId, now).humanDenials.add(now),
    toolChanged: (agentId, now) => touch(agentId, now).toolChanges.add(now),
    sent: (agentId, to, now) => touch(agentId, now).send(to, now),
    sweep(now) {
      for (const [agentId, log] of agents) {
        if (now - log.lastUse <= daysKept * day) return
        agents.delete(agentId)
      }
    },
    get size() {
      return agents.size
    },
  }
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

class AgentLog {
  readonly requests = new SlidingCount(minute, 12)
  readonly denials = new SlidingCount(10 * minute, 10)
  readonly held = new SlidingCount(day, 24)
  readonly humanDenials = new SlidingCount(day, 24)
  readonly toolChanges = new SlidingCount(day, 24)
  readonly bytes = new SlidingCount(daysKept * day, daysKept)
  readonly hosts = new Set<string>()
  readonly #maxHosts: number
  usualBodyBytes = 0
  lastUse = 0
  /** When it was last put to the end of the order of use. */
  movedAt = Number.NEGATIVE_INFINITY

  constructor(maxHosts: number) {
    this.#maxHosts = maxHosts
  }

  send({ host, bytes }: { readonly host: string; readonly bytes: number }, now: number): void {
    // The order of use matters only once one must be forgotten.
    if (this.hosts.size >= this.#maxHosts) this.hosts.delete(host)
    this.hosts.add(host)
    forgetOldest(this.hosts, this.#maxHosts)
    if (bytes <= 0) return
    this.bytes.add(now, bytes)
    const usual = this.usualBodyBytes
    this.usualBodyBytes = usual === 0 ? bytes : usual + newestShare * (bytes - usual)
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
    if (this.#requestsLastMinute === unread) this.#requestsLastMinute = this.#log?.requests.total(this.#now) ?? 0
    return this.#requestsLastMinute
  }

  get deniedLast10m(): number {
    if (this.#deniedLast10m === unread) this.#deniedLast10m = this.#log?.denials.total(this.#now) ?? 0
    return this.#deniedLast10m
  }

  get hitlLast24h(): number {
    if (this.#hitlLast24h === unread) this.#hitlLast24h = this.#log?.held.total(this.#now) ?? 0
    return this.#hitlLast24h
  }

  get humanDeniedLast24h(): number {
    if (this.#humanDeniedLast24h === unread) this.#humanDeniedLast24h = this.#log?.humanDenials.total(this.#now) ?? 0
    return this.#humanDeniedLast24h
  }

  get toolChangesLast24h(): number {
    if (this.#toolChangesLast24h === unread) this.#toolChangesLast24h = this.#log?.toolChanges.total(this.#now) ?? 0
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
