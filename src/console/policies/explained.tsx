import { Mark, type Tone } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import type { ConditionExplanation, Explanation } from '../types.ts'
import { EffectMark } from './effect.tsx'

type Rule = Explanation['rules'][number]
type Value = Rule['value']

const words: Readonly<Record<Value, readonly [text: string, tone: Tone]>> = {
  true: ['holds', 'good'],
  false: ['does not hold', 'plain'],
  unknown: ['needs the body', 'warn'],
  unreadable: ['cannot be read', 'warn'],
}

/** The decision, and every rule with its conditions and the values that they saw. */
export function Explained({ explanation: { result, readings, rules } }: { readonly explanation: Explanation }) {
  const { decision, rule, reason } = result
  return (
    <div class="stack explained">
      <p class="decision">
        {decision == null ? <Mark text="Needs the body" tone="warn" /> : <EffectMark effect={decision} />}{' '}
        <Text value={reason ?? `Waits for the body: ${(result.pending ?? []).join(', ')}`} />
      </p>
      {readings !== undefined && (
        <div>
          <h3>Ways in which servers read the path</h3>
          <ul class="lines">
            {readings.map(reading => (
              <li>
                <Text value={reading} as="code" />
              </li>
            ))}
          </ul>
        </div>
      )}
      <h3>Rule by rule</h3>
      <ol class="records">
        {rules.map(one => (
          <RuleRecord key={one.rule} rule={one} decides={one.rule === rule} />
        ))}
        {rules.length === 0 && <li class="record hint">The policy has no rules: its default decides.</li>}
      </ol>
    </div>
  )
}

function RuleRecord({ rule: one, decides }: { readonly rule: Rule; readonly decides: boolean }) {
  const { rule, effect, mode, value, matches, conditions } = one
  const [text, tone] = words[value]
  return (
    <li class={decides ? 'record decides' : 'record'}>
      <span class="rule-head">
        <EffectMark effect={effect} /> <Text value={rule} limit={200} as="strong" />
        {mode === 'shadow' && <Mark text="shadow" tone="warn" />}
        {decides && <Mark text="decides" tone="accent" />}
      </span>
      <span class="record-side">
        <Mark text={matches && value === 'unreadable' ? 'counts as holding' : text} tone={tone} />
      </span>
      <div class="conditions">
        {conditions.length === 0 ? <p class="hint">every request</p> : <Conditions conditions={conditions} />}
      </div>
    </li>
  )
}

const signs: Readonly<Record<Value, string>> = { true: '✓', false: '✗', unknown: '?', unreadable: '!' }

function Conditions({ conditions }: { readonly conditions: readonly ConditionExplanation[] }) {
  return (
    <ul>
      {conditions.map(({ condition, value, actual, inner }) => (
        <li>
          <span class={`sign ${value}`} role="img" aria-label={words[value][0]}>
            {signs[value]}
          </span>{' '}
          <Text value={inner === undefined ? condition : groupOf(condition)} limit={2_000} as="code" />
          {inner === undefined ? <Actual value={actual} /> : <Conditions conditions={inner} />}
        </li>
      ))}
    </ul>
  )
}

/** `any(...)` is drawn as a list. */
const groupOf = (condition: string): string => condition.slice(0, condition.indexOf('('))

function Actual({ value }: { readonly value: unknown }) {
  return (
    <span class="hint">
      {' '}
      was <Text value={value === undefined ? 'absent' : JSON.stringify(value)} limit={400} />
    </span>
  )
}
