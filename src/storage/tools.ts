/** Tools of MCP servers in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** Digests of the tools that one server has listed to one agent, by name. */
export interface ToolDigests {
  readonly agentId: string
  /** URL of the server, its query as a digest. */
  readonly server: string
  readonly digests: Readonly<Record<string, string>>
  /** When it last changed. */
  readonly at: number
}

/** Of one agent. */
export interface ToolLimits {
  readonly maxServers: number
  /** Of digests as JSON. */
  readonly maxBytes: number
}

export interface ToolTable {
  /** By name of the tool; undefined when nothing is stored for this agent and server. */
  digests(agentId: string, server: string): Promise<Readonly<Record<string, string>> | undefined>
  /**
   * Keeps them in the place of those before. Of an agent with more than the limits, the servers that changed longest ago are
   * forgotten, but never this one.
   *
   * @param change for the trail and for people; undefined when no tool has changed, or one of many has
   */
  keep(tools: ToolDigests, limits: ToolLimits, change?: AuditEntry): Promise<void>
}
