import { Facts } from '../parts/facts.tsx'
import { PolicyName } from '../parts/policy-name.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import { plural } from '../text.ts'
import type { HitlRequest } from '../types.ts'

/** The rule, what it looked at, and the signals of risk with their points. */
export function Why({ view }: { readonly view: HitlRequest }) {
  const { id, policyName, policyVersion, rule, ruleReason, reason, matched = [], risk } = view
  return (
    <section aria-labelledby="why">
      <h2 id="why">Why it was held</h2>
      <p class={ruleReason == null ? undefined : 'why-words'}>
        <Text value={ruleReason ?? reason} />
      </p>
      <Facts
        facts={[
          ['Policy', policyName == null ? 'none' : <PolicyName name={policyName} />],
          ['Rule', rule ?? 'the default of the policy'],
          ['Version', policyVersion == null ? undefined : <code>{policyVersion.slice(0, 19)}</code>],
        ]}
      />
      <details>
        <summary>{matched.length === 0 ? 'Reason' : plural(matched.length, 'condition')} in detail</summary>
        {ruleReason != null && (
          <p class="hint">
            <Text value={reason} />
          </p>
        )}
        {matched.length > 0 && <Matched matched={matched} />}
      </details>
      {risk != null && <Risk risk={risk} />}
      {mayRead.value && policyName != null && (
        <p>
          <a href={`${hrefOf('policies', policyName)}?request=${encodeURIComponent(id)}`}>Explain rule by rule</a>
        </p>
      )}
      {mayRead.value && (
        <p>
          <a href={`#/audit?subject=${encodeURIComponent(id)}`}>Entries in the audit trail</a>
        </p>
      )}
    </section>
  )
}

function Matched({ matched }: { readonly matched: readonly Readonly<Record<string, unknown>>[] }) {
  return (
    <Table
      caption="Conditions that matched"
      items={matched}
      columns={[
        { name: 'Condition', cell: ({ condition }) => <Text value={String(condition ?? '')} /> },
        {
          name: 'Value',
          cell: ({ actual }) => <Text value={typeof actual === 'string' ? actual : JSON.stringify(actual ?? null)} />,
        },
      ]}
    />
  )
}

function Risk({ risk }: { readonly risk: Readonly<Record<string, unknown>> }) {
  const { score, threshold, signals } = risk
  return (
    <details>
      <summary>
        Risk {String(score)}, threshold {String(threshold)}
      </summary>
      <Table
        label="Signals of risk"
        items={Array.isArray(signals) ? signals : []}
        columns={[
          {
            name: 'Signal',
            cell: one => (
              <>
                <Text value={String(one.signal ?? JSON.stringify(one))} />{' '}
                {one.detail !== undefined && <Text value={String(one.detail)} />}
              </>
            ),
          },
          { name: 'Points', kind: 'number', cell: one => String(one.points ?? one.score ?? one.weight ?? '') },
        ]}
      />
    </details>
  )
}
