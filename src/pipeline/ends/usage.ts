import { llmCost, llmTokens, llmUnpriced, llmUsage } from '../../telemetry/layout.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { CallUsage } from '../answers/usage-meter.ts'
import type { EndListener, EndParts } from './listener.ts'

/** Ends the reading of what a call used, and counts it. */
export const usageListener = ({ metrics }: EndParts): EndListener => ({
  name: 'usage',
  ended({ meter, ending }) {
    count(meter?.end(ending === 'forwarded'), metrics)
  },
  replayed: ({ usage }) => count(usage, metrics),
})

function count(usage: CallUsage | undefined, metrics: Metrics): void {
  if (usage === undefined) return
  const { how, tokens, cost } = usage
  metrics.count(llmUsage, how)
  if (tokens === undefined) return
  metrics.change(llmTokens, 'input', tokens.input)
  metrics.change(llmTokens, 'output', tokens.output)
  metrics.change(llmTokens, 'cache_read', tokens.cacheRead)
  metrics.change(llmTokens, 'cache_write', tokens.cacheWrite + tokens.cacheWriteLong)
  if (cost === undefined) metrics.add(llmUnpriced, 1)
  else metrics.add(llmCost, cost)
}
