import { Choice } from '../parts/choice.tsx'
import { Mark } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import type { Explanation } from '../types.ts'
import { type Draft, emptyDraft } from './draft.ts'
import { EffectMark } from './effect.tsx'
import { effects } from './effects.ts'
import { Explained } from './explained.tsx'
import { RequestForm } from './request-form.tsx'

/** A request, and what the policy must decide on it. */
export interface DraftTest {
  readonly draft: Draft
  /** Empty: it is only shown. */
  readonly wanted: '' | 'Allow' | 'Deny' | 'Hitl'
}

const wishes = [['', 'only show it'], ...effects.map(effect => [effect, effect] as const)] as const

const newTest: DraftTest = { draft: emptyDraft, wanted: '' }

/** Whether the decision is the wanted one; undefined when that is not known, or nothing is wanted. */
export function passes({ wanted }: DraftTest, explanation: Explanation | undefined): boolean | undefined {
  if (wanted === '' || explanation === undefined) return undefined
  return explanation.result.decision === wanted
}

interface TestsProps {
  readonly tests: readonly DraftTest[]
  /** Of the tests that have a URL, in their order; undefined: not known. */
  readonly explanations: readonly (Explanation | undefined)[]
  /** Header fields that the first one leaves out: their values are secret. */
  readonly redacted: readonly string[] | undefined
  readonly onChange: (tests: readonly DraftTest[]) => void
}

/** Requests on which the text is tried while it is typed. */
export function Tests({ tests, explanations, redacted = [], onChange }: TestsProps) {
  const change = (index: number, test: DraftTest | undefined) =>
    onChange(tests.flatMap((old, at) => (at === index ? (test ?? []) : old)))
  return (
    <section class="card" aria-labelledby="tests">
      <h2 id="tests">Tests</h2>
      {tests.length === 0 && <p class="hint">A test says what the policy must decide on a request. Nothing is sent.</p>}
      {redacted.length > 0 && (
        <p class="notice warn">
          Without <Text value={redacted.join(', ')} limit={400} />, whose values are secret: conditions on them are not
          tested.
        </p>
      )}
      <ol class="tests">
        {tests.map((test, index) => (
          <li key={index}>
            <OneTest
              test={test}
              number={index + 1}
              explanation={explanations[index]}
              onChange={next => change(index, next)}
            />
          </li>
        ))}
      </ol>
      <p class="actions">
        <button type="button" onClick={() => onChange([...tests, newTest])}>
          Add a test
        </button>
      </p>
    </section>
  )
}

interface OneProps {
  readonly test: DraftTest
  readonly number: number
  readonly explanation: Explanation | undefined
  /** Undefined: it is removed. */
  readonly onChange: (test: DraftTest | undefined) => void
}

function OneTest({ test, number, explanation, onChange }: OneProps) {
  const isPassed = passes(test, explanation)
  return (
    <>
      <p class="facts">
        <strong>Test {number}</strong>
        {isPassed !== undefined && <Mark text={isPassed ? 'passes' : 'fails'} tone={isPassed ? 'good' : 'bad'} />}
        {explanation !== undefined && <Decision explanation={explanation} />}
        <button type="button" class="plain" aria-label={`Remove test ${number}`} onClick={() => onChange(undefined)}>
          ×
        </button>
      </p>
      <RequestForm draft={test.draft} onInput={draft => onChange({ ...test, draft })} />
      <Choice
        label="Must be"
        value={test.wanted}
        options={wishes}
        onChange={wanted => onChange({ ...test, wanted: wanted as DraftTest['wanted'] })}
      />
      {explanation !== undefined && (
        <details>
          <summary>Rule by rule</summary>
          <Explained explanation={explanation} />
        </details>
      )}
    </>
  )
}

function Decision({ explanation: { result } }: { readonly explanation: Explanation }) {
  return (
    <>
      {result.decision == null ? <Mark text="Needs the body" tone="warn" /> : <EffectMark effect={result.decision} />}
      <span class="hint">
        <Text value={result.rule ?? 'default'} limit={80} />
      </span>
    </>
  )
}
