import { readsUsage } from '../../config/budgets.ts'
import { accessListener } from './access-line.ts'
import { activityListener, decisionListener, incidentListener, metricsListener, trustListener } from './counters.ts'
import type { EndListener, EndParts } from './listener.ts'
import { recordingListener } from './recording.ts'
import { spanListener } from './spans.ts'
import { usageListener } from './usage.ts'

/** The listeners that the settings ask for, in the order of their calls. */
export function createEndListeners(parts: EndParts): readonly EndListener[] {
  const listeners = [activityListener(parts), decisionListener(parts), incidentListener(parts), trustListener(parts)]
  if (parts.config.Metering.Usage || readsUsage(parts.config)) listeners.push(usageListener(parts))
  if (parts.recorder !== undefined) listeners.push(recordingListener(parts, parts.recorder))
  // Whether a trace is kept is decided at its end; metrics and the line name it.
  if (parts.tracing !== undefined) listeners.push(spanListener(parts.tracing))
  if (parts.metrics !== undefined) listeners.push(metricsListener(parts))
  if (parts.config.Logging.Access) listeners.push(accessListener(parts))
  return listeners
}
