import type { Overview, Series } from '../types.ts'
import { Plot } from './plot.tsx'

interface PlotsProps {
  readonly overview: Overview
  readonly times: readonly number[]
  readonly span: number
}

export function Plots({ overview, times, span }: PlotsProps) {
  const { stepSeconds, requests, decisions, cost, currency, whole, gateway, gauges } = overview
  const perMinute = (values: Series) => values.map(value => (value === null ? null : (value * 60) / stepSeconds))
  const common = { times, span }
  return (
    <div class="plots">
      <Plot
        {...common}
        title="Requests by outcome"
        unit="per minute"
        lines={[
          { name: 'forwarded', values: perMinute(requests.forwarded), colour: 'good' },
          { name: 'suspended', values: perMinute(requests.suspended), colour: 'accent' },
          { name: 'denied', values: perMinute(requests.denied), colour: 'bad' },
          { name: 'limited', values: perMinute(requests.limited), colour: 'warn' },
          { name: 'refused', values: perMinute(requests.refused), colour: 'ink-soft' },
          { name: 'failed', values: perMinute(requests.failed), colour: 'bad', isDashed: true },
          { name: 'aborted', values: perMinute(requests.aborted), colour: 'line-strong', isDashed: true },
        ]}
      />
      <Plot
        {...common}
        title="Decisions"
        unit="per minute"
        lines={[
          { name: 'Allow', values: perMinute(decisions.Allow), colour: 'good' },
          { name: 'Deny', values: perMinute(decisions.Deny), colour: 'bad' },
          { name: 'Hitl', values: perMinute(decisions.Hitl), colour: 'accent' },
        ]}
      />
      <Plot {...common} title="Time of a request" unit="ms" lines={percentiles(whole)} />
      <Plot {...common} title="Time in the gateway" unit="ms" lines={percentiles(gateway)} />
      <Plot
        {...common}
        title="Pending and in flight"
        unit="at most"
        lines={[
          { name: 'pending', values: gauges.pending, colour: 'accent' },
          { name: 'in flight', values: gauges.inFlight, colour: 'line-strong', isDashed: true },
        ]}
      />
      <Plot
        {...common}
        title="Oldest pending"
        unit="seconds"
        lines={[{ name: 'oldest', values: gauges.oldestSeconds, colour: 'accent' }]}
      />
      {currency !== null && (
        <Plot
          {...common}
          title="Spend on models"
          unit={`${currency} per minute`}
          lines={[{ name: 'cost', values: perMinute(cost), colour: 'accent' }]}
        />
      )}
      <Plot
        {...common}
        title="Circuits open"
        unit="at most"
        lines={[{ name: 'open', values: gauges.circuitsOpen, colour: 'bad' }]}
      />
    </div>
  )
}

const percentiles = ({ p50, p99 }: Overview['whole']) =>
  [
    { name: 'p50', values: p50, colour: 'accent' },
    { name: 'p99', values: p99, colour: 'warn', isDashed: true },
  ] as const
