import { When } from '../parts/frame.tsx'
import { Mark, Method } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import type { AgentActivity } from '../types.ts'

type Incident = AgentActivity['incidents'][number]

/** Requests that were refused or held. */
export function Incidents({ incidents }: { readonly incidents: readonly Incident[] }) {
  return (
    <section class="stack" aria-labelledby="incidents">
      <h2 id="incidents">Last requests refused or held</h2>
      {incidents.length === 0 ? (
        <p class="hint">None since the gateway started.</p>
      ) : (
        <ul class="records">
          {incidents.map(incident => (
            <IncidentRecord key={incident.requestId} incident={incident} />
          ))}
        </ul>
      )}
    </section>
  )
}

function IncidentRecord({ incident }: { readonly incident: Incident }) {
  const { at, method, origin, path, outcome, policy, rule, hitlId, requestId } = incident
  const isHeld = outcome === 'suspended'
  return (
    <li class="record">
      <span class="record-what">
        <Method name={method} /> <Text value={origin + path} limit={300} />
      </span>
      <When at={at} />
      <span class="record-more">
        <Mark text={isHeld ? 'Held' : outcome} tone={isHeld ? 'accent' : 'bad'} />
        {rule !== null && (
          <span>
            rule <Text value={rule} limit={80} />
          </span>
        )}
        {hitlId !== null && <a href={hrefOf('requests', hitlId)}>Request</a>}
        {mayRead.value && policy !== null && <a href={explainOf(policy, method, origin + path)}>Explain</a>}
        <span>
          <Text value={requestId} limit={80} as="code" />
        </span>
      </span>
    </li>
  )
}

/** Explains as much of it as is kept: method and URL without the query. */
function explainOf(policy: string, method: string, url: string): string {
  const given = new URLSearchParams({ method, url })
  return `${hrefOf('policies', policy)}?${given}`
}
