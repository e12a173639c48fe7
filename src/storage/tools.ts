/** Tools of MCP servers in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** A change of tools, for the trail, and for people unless they were told of many. */
export interface ToolsChanged {
  readonly entry: AuditEntry
  readonly isTold: boolean
}

/** Digests of the tools that one agent has seen on one server, by name. */
export interface SeenTools {
  readonly agentId: string
  /** URL of the server, its query as a digest. */
  readonly server: string
  readonly digests: Readonly<Record<string, string>>
  /** When it last changed. */
  readonly at: number
}

export interface ToolTable {
  /** What was kept; undefined when the agent has seen none there. */
  seen(agentId: string, server: string): Promise<Readonly<Record<string, string>> | undefined>
  /**
   * Keeps them in the place of those before. Of more than `mostServers` of one agent, those that changed longest ago are
   * forgotten.
   *
   * @param change undefined when no tool has changed
   */
  keep(tools: SeenTools, mostServers: number, change: ToolsChanged | undefined): Promise<void>
}
