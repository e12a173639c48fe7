import { query } from '../api.ts'
import { now } from '../clock.ts'
import { Facts } from '../parts/facts.tsx'
import { type Reading, useRead } from '../parts/read.ts'
import { Status, Trust } from '../parts/status.tsx'
import { Said, Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import { hrefOf } from '../router.ts'
import { agoText } from '../text.ts'
import type { AgentActivity, HitlRequest, PastRequest, PastRequestPage } from '../types.ts'
import { OutcomeMark } from './outcome-mark.tsx'

/** Verdicts that are shown. */
const mostVerdicts = 5

/** Who asks, and how people decided before. */
export function Asker({ view, asking }: { readonly view: HitlRequest; readonly asking: Reading<AgentActivity> }) {
  const { agent, counts } = asking.data ?? {}
  return (
    <section aria-labelledby="who">
      <h2 id="who">Who asks</h2>
      <Facts
        facts={[
          ['Agent', <Text value={view.agentName ?? 'not registered any more'} href={hrefOf('agents', view.agentId)} />],
          ['Owner', view.ownerId ?? ''],
          ['Trust', agent && <Trust score={agent.trustScore} />],
          ['Status', agent && <Status status={agent.status} />],
          ['Last 24 hours', counts && `${counts.hitlLast24h} held, ${counts.humanDeniedLast24h} denied by people`],
        ]}
      />
      <Verdicts view={view} />
    </section>
  )
}

/** The last verdicts on requests of this agent that the same rule held. */
function Verdicts({ view: { id, agentId, rule } }: { readonly view: HitlRequest }) {
  const asked = { status: 'decided', agentId, rule: rule ?? undefined, pageSize: mostVerdicts + 1 }
  const { data } = useRead<PastRequestPage>(`/hitl/history${query(asked)}`)
  const verdicts = data?.items.filter(past => past.id !== id).slice(0, mostVerdicts)
  if (verdicts === undefined) return null
  const of = rule == null ? 'this agent' : 'this agent under this rule'
  if (verdicts.length === 0) return <p class="hint">No verdict on {of} yet.</p>
  return (
    <>
      <h3>Last verdicts on {of}</h3>
      <ul class="lines">
        {verdicts.map(past => (
          <Verdict key={past.id} past={past} />
        ))}
      </ul>
    </>
  )
}

function Verdict({ past }: { readonly past: PastRequest }) {
  return (
    <li>
      <OutcomeMark of={past} />{' '}
      <Text value={whatOf(past) ?? `${past.method} ${past.url}`} limit={120} href={hrefOf('requests', past.id)} />
      <span class="hint"> {agoText(past.decidedAt ?? past.timestamp, now.value)}</span>
      {past.comment !== null && <Said value={past.comment} limit={200} />}
    </li>
  )
}
