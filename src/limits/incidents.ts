/**
 * Requests that were not simply allowed: the latest of each agent, and what is denied most within an hour. For people
 * who watch the gateway; in memory, bounded, and lost with a restart.
 */
import { forgetOldest } from '../base/records.ts'

export interface Incident {
  /** Wall clock milliseconds since the epoch. */
  readonly at: number
  readonly agentId: string
  readonly requestId: string
  readonly method: string
  /** Scheme, host and port of the upstream; empty when the target was not readable. */
  readonly origin: string
  /** Without query. */
  readonly path: string
  /** Code of the refusal, or `suspended`. */
  readonly outcome: string
  readonly denied: boolean
  readonly policy: string | null
  readonly rule: string | null
  readonly hitlId: string | null
}

export interface RankedName {
  readonly name: string
  readonly count: number
}

/** Names with the most denials, highest first. */
export interface Denials {
  /** `policy/rule`; the rule is empty for the default of a policy. */
  readonly rules: readonly RankedName[]
  readonly hosts: readonly RankedName[]
  /** Ids. */
  readonly agents: readonly RankedName[]
}

export type Incidents = ReturnType<typeof createIncidents>

export interface IncidentLimits {
  readonly agents: number
  readonly ofAgent: number
  /** Names counted at the same time, of each kind. */
  readonly names: number
  /** Hosts of these that one agent may be the first to name. */
  readonly hostsOfAgent: number
}

const slotMs = 300_000
const slotsKept = 12
/** Names shown. */
const shown = 10
/** Longest path kept, characters. */
const maxPath = 200

interface Slot {
  readonly number: number
  readonly rules: Map<string, number>
  readonly hosts: Map<string, number>
  readonly agents: Map<string, number>
  /** Hosts that each agent was the first to name: agents can make up as many as they like. */
  readonly hostsBy: Map<string, number>
}

const usualLimits: IncidentLimits = { agents: 500, ofAgent: 20, names: 200, hostsOfAgent: 20 }

/** Copies the text: a slice would keep the whole text in memory, here a URL of up to 16 KiB. */
function shortCopy(path: string): string {
  const start = Buffer.from(path.slice(0, maxPath)).toString()
  return path.length > maxPath ? `${start}…` : start
}

export function createIncidents(limits = usualLimits) {
  const byAgent = new Map<string, Incident[]>()
  let slots: Slot[] = []

  const slotAt = (now: number): Slot => {
    const number = Math.floor(now / slotMs)
    const newest = slots.at(-1)
    if (newest !== undefined && number <= newest.number) return newest
    const slot = { number, rules: new Map(), hosts: new Map(), agents: new Map(), hostsBy: new Map() }
    slots = [...slots.filter(old => old.number > number - slotsKept), slot]
    return slot
  }
  const count = (names: Map<string, number>, name: string) => {
    const before = names.get(name) ?? 0
    // Names that agents invent must not displace names that are counted already.
    if (before > 0 || names.size < limits.names) names.set(name, before + 1)
  }
  const countHost = ({ hosts, hostsBy }: Slot, { origin, agentId }: Incident) => {
    const isNew = !hosts.has(origin)
    const named = hostsBy.get(agentId) ?? 0
    if (isNew && (named >= limits.hostsOfAgent || hosts.size >= limits.names)) return
    if (isNew) hostsBy.set(agentId, named + 1)
    count(hosts, origin)
  }
  const rank = (kind: 'rules' | 'hosts' | 'agents', now: number): readonly RankedName[] => {
    const total = new Map<string, number>()
    for (const slot of slots) {
      if (slot.number <= Math.floor(now / slotMs) - slotsKept) continue
      for (const [name, times] of slot[kind]) total.set(name, (total.get(name) ?? 0) + times)
    }
    const all = [...total].map(([name, times]) => ({ name, count: times }))
    return all.sort((left, right) => right.count - left.count).slice(0, shown)
  }

  return {
    /** @returns the kept record: a long path is cut */
    note(incident: Incident): Incident {
      const { agentId, path } = incident
      const list = byAgent.get(agentId) ?? []
      const kept = { ...incident, path: shortCopy(path) }
      list.push(kept)
      if (list.length > limits.ofAgent) list.shift()
      byAgent.delete(agentId)
      byAgent.set(agentId, list)
      forgetOldest(byAgent, limits.agents)
      if (!incident.denied) return kept
      const slot = slotAt(incident.at)
      count(slot.rules, `${incident.policy ?? ''}/${incident.rule ?? ''}`)
      countHost(slot, incident)
      count(slot.agents, agentId)
      return kept
    },
    /** Latest first. Incidents of other threads and gateways arrive late. */
    of: (agentId: string) => (byAgent.get(agentId) ?? []).toReversed().sort((left, right) => right.at - left.at),
    /** Denials within the last hour. */
    denials: (now: number) => ({ rules: rank('rules', now), hosts: rank('hosts', now), agents: rank('agents', now) }),
  }
}
