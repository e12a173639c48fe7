import { llmCost, llmTokens, llmUnpriced, llmUsage } from '../../telemetry/layout.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { CallUsage } from '../answers/usage-meter.ts'
import type { EndListener, EndParts } from './listener.ts'

/** Ends the reading of what a call used, and counts it. */
export const usageListener = ({ metrics }: EndParts): EndListener => ({
  name: 'usage',
  ended({ meter, ending }) {
    const usage = meter?.end(ending === 'forwarded')
    if (usage !== undefined) count(usage, metrics)
  },
  replayed: ({ usage }) => count(usage, metrics),
})

function count({ how, tokens, cost }: CallUsage, metrics: Metrics): void {
  metrics.count(llmUsage, how)
  if (tokens === undefined) return
  metrics.change(llmTokens, 'input', tokens.input)
  metrics.change(llmTokens, 'output', tokens.output)
  metrics.change(llmTokens, 'cache_read', tokens.cacheRead)
  metrics.change(llmTokens, 'cache_write', tokens.cacheWrite + tokens.cacheWriteLong)
  if (cost === undefined) metrics.add(llmUnpriced, 1)
  else metrics.add(llmCost, cost)
}
