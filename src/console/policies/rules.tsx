import { Mark } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import { plural } from '../text.ts'
import type { Condition, Policy, Rule } from '../types.ts'
import { writtenValue } from './document.ts'
import { EffectMark } from './effect.tsx'
import { effects } from './effects.ts'

export function Rules({ policy }: { readonly policy: Policy }) {
  const { rules, hits = [], shadow = [] } = policy
  const inOrder = [...rules].sort(
    (left, right) =>
      (right.priority ?? 0) - (left.priority ?? 0) || effects.indexOf(right.effect) - effects.indexOf(left.effect),
  )
  const countOf = (name: string | null) => hits.find(({ rule }) => rule === name)?.count ?? 0
  return (
    <section class="stack" aria-labelledby="rules">
      <h2 id="rules">Rules, in the order in which they are asked</h2>
      <p class="hint">Counts are those since the gateway started.</p>
      <ol class="records">
        {inOrder.map(rule => (
          <RuleRecord
            key={rule.name}
            rule={rule}
            count={countOf(rule.name)}
            shadow={shadow.find(one => one.rule === rule.name)?.count ?? 0}
          />
        ))}
        <li class="record">
          <span class="rule-head">
            <EffectMark effect={policy.default} /> <strong>Otherwise</strong>
          </span>
          <span class="record-side">decided {plural(countOf(null), 'request')}</span>
        </li>
      </ol>
    </section>
  )
}

interface RuleProps {
  readonly rule: Rule
  readonly count: number
  /** How often it would have decided otherwise. */
  readonly shadow: number
}

function RuleRecord({ rule, count, shadow }: RuleProps) {
  const { name, effect, priority = 0, mode, conditions, reason, approvals = 1 } = rule
  return (
    <li class="record">
      <span class="rule-head">
        <EffectMark effect={effect} /> <Text value={name} limit={200} as="strong" />
        {mode === 'shadow' && <Mark text="shadow" tone="warn" />}
        <span class="hint">priority {priority}</span>
        {approvals > 1 && <span class="hint">{approvals} approvals</span>}
      </span>
      <span class="record-side">
        {mode === 'shadow' ? `would have changed ${shadow}` : `decided ${plural(count, 'request')}`}
      </span>
      {reason !== undefined && (
        <span class="record-more">
          <Text value={reason} limit={400} />
        </span>
      )}
      <div class="conditions">
        {conditions.length === 0 ? <p class="hint">every request</p> : <Conditions conditions={conditions} />}
      </div>
    </li>
  )
}

function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  return (
    <ul>
      {conditions.map(condition => (
        <li>
          <ConditionText condition={condition} />
        </li>
      ))}
    </ul>
  )
}

function ConditionText({ condition }: { readonly condition: Condition }) {
  const { field, operator, value, quantifier, ignoreCase, all, any, not } = condition
  if (all !== undefined) return <Group name="all of" conditions={all} />
  if (any !== undefined) return <Group name="any of" conditions={any} />
  if (not !== undefined) return <Group name="not" conditions={[not]} />
  const text = value === undefined ? '' : JSON.stringify(writtenValue(condition))
  return (
    <code>
      <Text value={[quantifier, field, operator, text].filter(part => part).join(' ')} limit={2_000} />
      {ignoreCase === true && ' (in any case)'}
    </code>
  )
}

function Group({ name, conditions }: { readonly name: string; readonly conditions: readonly Condition[] }) {
  return (
    <>
      <span class="hint">{name}</span>
      <Conditions conditions={conditions} />
    </>
  )
}
