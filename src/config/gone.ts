/** Settings of earlier versions, and what to do about each that is still given. */
const gone: Readonly<Record<string, string>> = {
  'System:CircuitBreaker:WindowSeconds': 'remove it; failures within 60 seconds count',
  'Security:AgentAuth:TokenRequests:QueueLength': 'remove it; 32 secrets may wait to be hashed',
  'Policy:MaxJsonValues': 'remove it; a body may have 100000 values',
  'Proxy:Redirects': 'remove it; links of upstreams always lead through the gateway',
  'Proxy:Cookies': 'remove it; cookies of upstreams always get a path below their upstream',
  'Proxy:OversizeBody': 'remove it; a longer body decides as unreadable',
  'Security:AgentAuth:ExternalIdentity:Jwt:Binding': 'remove it; a token gets in as the agent that it is bound to',
  'Mcp:NoteToolChanges': 'remove it; changes of tools are always noted',
  'Telemetry:Metrics:Enabled': 'remove it; events are always counted',
  'Trust:QuarantineWindowSeconds': 'remove it; denials and losses within 300 seconds count',
}

const byName: ReadonlyMap<string, string> = new Map(
  Object.entries(gone).map(([name, advice]) => [name.toLowerCase(), advice]),
)

/** @param keys on the way to it, in any letter case; undefined when there never was such a setting */
export function adviceOnGone(keys: readonly string[]): string | undefined {
  const advice = byName.get(keys.join(':').toLowerCase())
  return advice && `is no longer a setting: ${advice}`
}
