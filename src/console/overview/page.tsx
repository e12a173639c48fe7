import { useMemo } from 'preact/hooks'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { search, setSearch } from '../router.ts'
import { mayRead } from '../session.ts'
import { spanText } from '../text.ts'
import type { Overview } from '../types.ts'
import { CredentialTroubles } from './credentials.tsx'
import { Denials } from './denials.tsx'
import './overview.css'
import { Plots } from './plots.tsx'
import { Spenders } from './spend.tsx'
import { Tiles } from './tiles.tsx'
import { Verdicts } from './verdicts.tsx'

/** Range, text, and how often it is read again, milliseconds. */
const ranges = [
  ['hour', 'Last hour', 10_000, 3_600],
  ['day', 'Last day', 60_000, 86_400],
] as const

/** The numbers of the last hour or day. */
export const OverviewPage: Page = () => {
  const [range, , everyMs, span] = search.value.get('range') === 'day' ? ranges[1] : ranges[0]
  const reading = useRead<Overview>(`/overview?range=${range}`, everyMs)
  return (
    <Frame
      title="Overview"
      aside={ranges.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === range}
          onClick={() => setSearch({ range: name === 'hour' ? undefined : name })}
        >
          {text}
        </button>
      ))}
    >
      {mayRead.value && <CredentialTroubles />}
      <Shown reading={reading}>
        {overview => (
          <>
            <Now now={overview.now} />
            <Measured overview={overview} span={span} />
            <Spenders />
            <Verdicts range={range} />
            <Denials denials={overview.denials} />
          </>
        )}
      </Shown>
    </Frame>
  )
}

function Now({ now: { pending, oldestSeconds, inFlight, circuitsOpen } }: Pick<Overview, 'now'>) {
  return (
    <Tiles
      label="Now"
      tiles={[
        ['Pending', pending],
        ['Oldest pending for', pending === 0 ? '–' : spanText(oldestSeconds * 1_000)],
        ['In flight', inFlight],
        ['Circuits open', circuitsOpen, circuitsOpen > 0],
      ]}
    />
  )
}

function Measured({ overview, span }: { readonly overview: Overview; readonly span: number }) {
  const { until, stepSeconds, requests } = overview
  const steps = requests.forwarded.length
  const times = useMemo(() => {
    const last = Date.parse(until) / 1_000
    return Array.from({ length: steps }, (_, index) => last - (steps - 1 - index) * stepSeconds)
  }, [overview])
  if (steps === 0) {
    return <p class="notice">The plots begin with the first step of {stepSeconds} seconds after the gateway starts.</p>
  }
  return <Plots overview={overview} times={times} span={span} />
}
