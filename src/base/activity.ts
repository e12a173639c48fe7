/** Sliding counters of one agent, for rules and the risk score. All are zero for an agent not seen before. */
export interface Activity {
  readonly requestsLastMinute: number
  readonly deniedLast10m: number
  readonly hitlLast24h: number
  readonly humanDeniedLast24h: number
  /** How often a tool of an MCP server differed from what the agent saw before. */
  readonly toolChangesLast24h: number
  /** Body bytes sent since midnight UTC. */
  readonly bytesToday: number
  /** Median of the days before, as far as they are known; 0 when none is. */
  readonly medianBytesPerDay: number
  /** Moving average of body sizes, bytes; 0 when none was seen. */
  readonly usualBodyBytes: number
  /** Whether this agent was allowed to this host before. */
  hostSeen(host: string): boolean
}
