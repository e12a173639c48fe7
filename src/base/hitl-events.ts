/** Events of held requests and of agents. */
export const hitlEvents = [
  'pending',
  /** One of several approvals was given. */
  'approval',
  /** A reviewer gave it more time. */
  'extended',
  /** Approved, and being sent. */
  'approved',
  /** Could not be sent at all: it waits again. */
  'released',
  'denied',
  /** Its agent, or the call that waited for it, went away first. */
  'withdrawn',
  'expired',
  /** The outcomes of sending it. */
  'completed',
  'failed',
  'unknown',
  /** About an agent: the gateway has quarantined it. */
  'quarantined',
  /** About an agent: a tool of an MCP server differs from what the agent saw before. */
  'toolChanged',
  /** About a budget: it is nearly spent, or used up. */
  'budgetWarned',
  'budgetExceeded',
  /** About a credential: a person must grant access again. */
  'credentialNeeded',
] as const
