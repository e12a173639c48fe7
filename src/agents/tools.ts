/**
 * The tools of MCP servers that each agent has seen. A server that changes what a tool says of itself, after people have
 * approved its use, may want to lead the model astray ("rug pull").
 *
 * Each agent has its own record: a server may show other tools to another agent, and no agent can make another trust
 * what it has not seen.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { AuditEntry, Store } from '../storage/store.ts'

/** A tool that an agent sees, and the digest of its definition. */
export interface ListedTool {
  readonly name: string
  readonly digest: string
}

/** A list of tools on its way to an agent. */
export interface ToolList {
  readonly agentId: string
  /** URL of the server, its query as a digest. */
  readonly server: string
  readonly tools: readonly ListedTool[]
  readonly requestId: string
}

/** Tools that differ from what the agent saw before. */
export interface ToolChange {
  readonly agentId: string
  readonly server: string
  /** Names of the first of them. */
  readonly tools: readonly string[]
  readonly count: number
}

export interface ToolNotes {
  /** Compares the list with what the agent saw before, and keeps it. Resolves when a change is on record. */
  note(list: ToolList): Promise<void>
}

/** Servers of one agent, and tools of one server, that are kept. Further tools are not compared. */
const maxServers = 100
const maxTools = 2_000
/** Digests that are kept of one agent, bytes. */
const maxBytes = 4_194_304
/** Maximum of names of changed tools in one report, and their longest form there. */
const maxAudited = 10
const maxNameLength = 64
/** Longest name that is kept, characters. Of longer ones the digest is kept: a server may make them as long as a list. */
const longestName = 128
/** The same of a URL: it is the key of a record, and stands in each entry. */
const longestServer = 512

/**
 * Changes of one agent within an hour that are reported to people, with an audit entry each. Its server could change them
 * with each list: further ones are counted.
 */
const maxAuditedHourly = 20
const hourMs = 3_600_000
const maxAgents = 10_000

interface ToolNotesParts {
  readonly store: Pick<Store, 'tools'>
  readonly clock: Clock
  /** Puts a change on record that is one of many: `audit/repeats.ts`. */
  readonly noteRepeated: (entry: AuditEntry, windowMs: number) => Promise<void>
  /** Called for each change, once it is on record. `isAudited`: it has an entry, and is reported to people. */
  readonly onChange: (change: ToolChange, isAudited: boolean) => void
}

export function createToolNotes({ store, clock, noteRepeated, onChange }: ToolNotesParts): ToolNotes {
  // Lists of one server for one agent are compared one after the other.
  const underway = new Map<string, Promise<void>>()
  const audited = new LRUCache<string, { readonly since: number; count: number }>({ max: maxAgents })

  const isAudited = (agentId: string): boolean => {
    const now = clock.steady()
    const before = audited.get(agentId)
    const hour = before !== undefined && now - before.since < hourMs ? before : { since: now, count: 0 }
    hour.count += 1
    audited.set(agentId, hour)
    return hour.count <= maxAuditedHourly
  }

  async function compare({ agentId, server, tools, requestId }: ToolList): Promise<void> {
    const before = new Map(Object.entries((await store.tools.digests(agentId, server)) ?? {}))
    const after = new Map(before)
    const changed: string[] = []
    for (const [name, digest] of byName(tools)) {
      const known = before.get(name)
      if (known === digest || (known === undefined && after.size >= maxTools)) continue
      if (known !== undefined) changed.push(name)
      after.set(name, digest)
    }
    if (after.size === before.size && changed.length === 0) return
    const at = clock.now()
    const kept = { agentId, server, digests: Object.fromEntries(after), at }
    const keep = (entry?: AuditEntry) => store.tools.keep(kept, { maxServers, maxBytes }, entry)
    if (changed.length === 0) return keep()
    const named = { server, tools: changed.slice(0, maxAudited).map(shortName) }
    const change = { agentId, ...named, count: changed.length }
    const entry = { at, actor: 'gateway', action: 'mcp.toolChanged', subject: agentId, requestId, details: named }
    const isAuditedNow = isAudited(agentId)
    if (!isAuditedNow) await noteRepeated(entry, hourMs)
    await (isAuditedNow ? keep({ ...entry, details: { ...named, count: changed.length } }) : keep())
    onChange(change, isAuditedNow)
  }

  return {
    note(given) {
      const list = { ...given, server: keptServer(given.server) }
      const key = `${list.agentId} ${list.server}`
      const noted = (underway.get(key) ?? Promise.resolve()).catch(() => {}).then(() => compare(list))
      const done = noted.finally(() => {
        if (underway.get(key) === done) underway.delete(key)
      })
      underway.set(key, done)
      return done
    },
  }
}

/** The digest of each tool by its name, which is short. A server may have several tools of one name. */
function byName(tools: readonly ListedTool[]): Map<string, string> {
  const digests = new Map<string, string>()
  for (const tool of tools) {
    const name = keptName(tool.name)
    const before = digests.get(name)
    // The record must not grow with the number of such tools.
    digests.set(name, before === undefined ? tool.digest : digestOf(`${before} ${tool.digest}`))
  }
  return digests
}

const keptName = (name: string): string => shortened(name, longestName)
const keptServer = (server: string): string => shortened(server, longestServer)
const shortName = (name: string): string => (name.length <= maxNameLength ? name : `${name.slice(0, maxNameLength)}…`)

/** Two texts with the same beginning stay two. */
const shortened = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest)} ${digestOf(text)}`

const digestOf = (text: string): string => hash('sha256', text, 'base64url')
