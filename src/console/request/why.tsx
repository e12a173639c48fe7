import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import type { HitlRequest } from '../types.ts'

/** The rule, what it looked at, and the signals of risk with their points. */
export function Why({ view }: { readonly view: HitlRequest }) {
  const { policyName, policyVersion, rule, ruleReason, reason, matched = [], risk } = view
  return (
    <section aria-labelledby="why">
      <h2 id="why">Why it was held</h2>
      {ruleReason != null && (
        <p>
          <strong>
            <Text value={ruleReason} />
          </strong>
        </p>
      )}
      <p>
        <Text value={reason} />
      </p>
      <dl class="pairs">
        <div>
          <dt>Policy</dt>
          <dd>
            {policyName != null && mayRead.value ? (
              <a href={hrefOf('policies', policyName)}>{policyName}</a>
            ) : (
              (policyName ?? 'none')
            )}
          </dd>
        </div>
        <div>
          <dt>Rule</dt>
          <dd>{rule ?? 'the default of the policy'}</dd>
        </div>
        {policyVersion != null && (
          <div>
            <dt>Version</dt>
            <dd>
              <code>{policyVersion.slice(0, 19)}</code>
            </dd>
          </div>
        )}
      </dl>
      {matched.length > 0 && <Matched matched={matched} />}
      {risk != null && <Risk risk={risk} />}
    </section>
  )
}

function Matched({ matched }: { readonly matched: readonly Readonly<Record<string, unknown>>[] }) {
  return (
    <table class="grid">
      <caption>Conditions that matched</caption>
      <thead>
        <tr>
          <th scope="col">Condition</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {matched.map(({ condition, actual }) => (
          <tr>
            <td>
              <Text value={String(condition ?? '')} />
            </td>
            <td>
              <Text value={typeof actual === 'string' ? actual : JSON.stringify(actual ?? null)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Risk({ risk }: { readonly risk: Readonly<Record<string, unknown>> }) {
  const { score, threshold, signals } = risk
  const list = Array.isArray(signals) ? signals : []
  return (
    <table class="grid">
      <caption>
        Risk {String(score)}, threshold {String(threshold)}
      </caption>
      <thead>
        <tr>
          <th scope="col">Signal</th>
          <th scope="col">Points</th>
        </tr>
      </thead>
      <tbody>
        {list.map(one => (
          <tr>
            <td>
              <Text value={String(one.signal ?? JSON.stringify(one))} />
              {one.detail !== undefined && (
                <>
                  {' '}
                  <Text value={String(one.detail)} />
                </>
              )}
            </td>
            <td class="number">{String(one.points ?? one.score ?? one.weight ?? '')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
