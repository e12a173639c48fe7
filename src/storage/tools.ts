/** Tools of MCP servers in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** Digests of the tools that one agent has seen on one server, by name. */
export interface SeenTools {
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
  /** What was kept; undefined when the agent has seen none there. */
  seen(agentId: string, server: string): Promise<Readonly<Record<string, string>> | undefined>
  /**
   * Keeps them in the place of those before. Of an agent with more than the limits, the servers that changed longest ago are
   * forgotten, but never this one.
   *
   * @param change for the trail, and told to people; undefined when no tool has changed, or one of many has
   */
  keep(tools: SeenTools, limits: ToolLimits, change?: AuditEntry): Promise<void>
}
