import { Mark, Method, type Tone } from '../parts/marks.tsx'
import { useSome } from '../parts/some.tsx'
import { Text } from '../parts/text.tsx'
import type { PolicyDiff } from '../types.ts'
import { EffectMark } from './effect.tsx'

export type Counterexample = PolicyDiff['examples'][number]

const verdicts: Readonly<Record<PolicyDiff['wider'], readonly [text: string, tone: 'good-text' | 'notice warn']>> = {
  no: ['No request gets a milder decision than in force: this is proved from the rules.', 'good-text'],
  possible: ['That some request gets a milder decision is not excluded, though no example was found.', 'notice warn'],
  shown: ['Some requests get a milder decision than in force. An example, decided by both:', 'notice warn'],
}

const tones: Readonly<Record<string, Tone>> = { wider: 'warn', removed: 'warn', added: 'accent', narrower: 'good' }

interface DifferenceProps {
  readonly difference: PolicyDiff
  /** Absent: an example is only shown. */
  readonly onTest?: (example: Counterexample) => void
}

/** How the rules differ from those in force, and a request for each way in which they are milder. */
export function Difference({ difference: { wider, rules, examples, ...rest }, onTest }: DifferenceProps) {
  const [text, tone] = verdicts[wider]
  const [changed, more] = useSome(rules.filter(({ difference }) => difference !== 'same'))
  const { before, after } = rest.default
  return (
    <div class="stack">
      <p class={tone}>{text}</p>
      {examples.length > 0 && (
        <ul class="records" aria-label="Requests that get a milder decision">
          {examples.map(example => (
            <Example key={`${example.ruleBefore} ${example.ruleAfter}`} example={example} onTest={onTest} />
          ))}
        </ul>
      )}
      {before !== after && (
        <p>
          Default: <EffectMark effect={before} /> → <EffectMark effect={after} />
        </p>
      )}
      {changed.length > 0 && (
        <ul class="lines" aria-label="Rules that differ">
          {changed.map(({ rule, effect, difference, changes }) => (
            <li key={rule} class="rule-head">
              <Mark text={difference} tone={tones[difference] ?? 'plain'} /> <EffectMark effect={effect} />
              <Text value={rule} limit={200} />
              {changes.length > 0 && (
                <span class="hint">
                  <Text value={changes.join('; ')} limit={400} />
                </span>
              )}
            </li>
          ))}
          {more && <li>{more}</li>}
        </ul>
      )}
    </div>
  )
}

interface ExampleProps {
  readonly example: Counterexample
  readonly onTest: ((example: Counterexample) => void) | undefined
}

function Example({ example, onTest }: ExampleProps) {
  const { method, url, headers, body, agent, before, after, ruleBefore, ruleAfter } = example
  const facts = Object.entries(agent).map(([name, value]) => `agent.${name}: ${JSON.stringify(value)}`)
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const more = [...fields, ...facts, ...(body === '' ? [] : [body])]
  return (
    <li class="record">
      <span class="record-what">
        <Method name={method} /> <Text value={url} limit={300} />
      </span>
      <span class="rule-head">
        <EffectMark effect={before} /> → <EffectMark effect={after} />
      </span>
      <span class="record-more">
        <span>
          by <Text value={ruleAfter ?? 'the default'} limit={200} />, before by{' '}
          <Text value={ruleBefore ?? 'the default'} limit={200} />
        </span>
        {more.map(line => (
          <Text value={line} limit={400} as="code" />
        ))}
        {onTest !== undefined && (
          <button type="button" onClick={() => onTest(example)}>
            Add as a test
          </button>
        )}
      </span>
    </li>
  )
}
