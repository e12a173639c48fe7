import { now } from '../clock.ts'
import { When } from '../parts/frame.tsx'
import { Text } from '../parts/text.tsx'
import { plural } from '../text.ts'
import type { AgentActivity } from '../types.ts'

type Change = AgentActivity['trust'][number]

const causes: Readonly<Record<string, readonly [one: string, many: string]>> = {
  success: ['request answered', 'requests answered'],
  humanApproval: ['approval', 'approvals'],
  policyDenial: ['denial by policy', 'denials by policy'],
  humanDenial: ['denial by people', 'denials by people'],
  secretDetected: ['secret in a body', 'secrets in bodies'],
  badCredential: ['wrong credential', 'wrong credentials'],
}

/** How often each cause occurred, in words. */
export const causeTexts = (counts: Change['causes']): readonly string[] =>
  Object.entries(counts).map(([cause, count]) => {
    const [one, many] = causes[cause] ?? [cause, cause]
    return plural(count, one, many)
  })

const actions: Readonly<Record<string, string>> = {
  'agent.quarantine': 'Quarantined',
  'agent.liftQuarantine': 'Quarantine lifted',
}

/** Trust over time, and why it moved. */
export function TrustHistory({ activity: { trust } }: { readonly activity: AgentActivity }) {
  return (
    <section class="card" aria-labelledby="trust">
      <h2 id="trust">Trust</h2>
      {trust.length === 0 ? (
        <p class="hint">It has not moved yet.</p>
      ) : (
        <>
          <Curve changes={trust} />
          <ol class="lines">
            {trust.slice(0, 10).map(change => (
              <li key={`${change.at} ${change.action}`}>
                <Moved change={change} />
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  )
}

function Moved({ change: { at, action, trustBefore, trustAfter, causes: counts } }: { readonly change: Change }) {
  const moved = trustBefore !== null && trustAfter !== null
  return (
    <>
      {moved && (
        <strong class={trustAfter < trustBefore ? 'bad-text' : 'good-text'}>
          {trustBefore.toFixed(2)} → {trustAfter.toFixed(2)}
        </strong>
      )}{' '}
      <Text value={[actions[action], ...causeTexts(counts)].filter(text => text !== undefined).join(', ')} />{' '}
      <span class="hint">
        <When at={at} />
      </span>
    </>
  )
}

const width = 600
const height = 100

/** A line of steps, from the first change that is known until now. The list below says the same in words. */
function Curve({ changes }: { readonly changes: readonly Change[] }) {
  const points = changes
    .flatMap(({ at, trustBefore, trustAfter }) =>
      trustBefore === null || trustAfter === null ? [] : [{ at: Date.parse(at), trustBefore, trustAfter }],
    )
    .reverse()
  const first = points[0]
  const last = points.at(-1)
  if (first === undefined || last === undefined) return null
  const span = Math.max(1, now.value - first.at)
  // Space before the first change.
  const x = (at: number) => (0.05 + (0.95 * (at - first.at)) / span) * width
  const y = (trust: number) => (1 - trust) * height
  const steps = points.map(({ at, trustBefore, trustAfter }) => `${x(at)},${y(trustBefore)} ${x(at)},${y(trustAfter)}`)
  const line = `0,${y(first.trustBefore)} ${steps.join(' ')} ${width},${y(last.trustAfter)}`
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label="Trust over time">
        <line x1={0} x2={width} y1={height / 2} y2={height / 2} class="curve-middle" />
        <polyline points={line} class="curve-line" />
      </svg>
      <figcaption class="hint">
        <span>1</span>
        <span>
          since <When at={new Date(first.at).toISOString()} />
        </span>
        <span>0</span>
      </figcaption>
    </figure>
  )
}
