import { createToolNotes, type ToolChange, type ToolNotes } from '../agents/tools.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import type { Base } from './base.ts'

export interface ToolNoteParts extends Pick<Base, 'clock' | 'log' | 'store' | 'repeats' | 'report'> {
  readonly recent: Pick<RecentActivity, 'activity'>
}

/** Follows the lists of tools of MCP servers. Changes are logged, and count as activity of the agent. */
export function openToolNotes(parts: ToolNoteParts): ToolNotes {
  const { clock, log, recent, repeats } = parts
  const onChange = ({ agentId, server, count }: ToolChange, isAudited: boolean): void => {
    if (isAudited) log.warn({ agentId, reason: `${count} changed on ${server}` }, 'tools of an MCP server have changed')
    // Events count in every gateway.
    else recent.activity.toolChanged(agentId, clock.now())
  }
  return createToolNotes({ ...parts, noteRepeated: repeats.note, onChange })
}
