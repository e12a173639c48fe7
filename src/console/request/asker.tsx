import { now } from '../clock.ts'
import { Facts } from '../parts/facts.tsx'
import { useRead } from '../parts/read.ts'
import { Trust } from '../parts/status.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { agoText } from '../text.ts'
import type { AgentActivity, HitlRequest } from '../types.ts'
import { Changes } from './changes.tsx'
import { outcomeOf } from './outcome.ts'

/** Who asks, how it stood before, and how this differs from what was approved before. */
export function Asker({ view }: { readonly view: HitlRequest }) {
  const { data: activity } = useRead<AgentActivity>(`/agents/${view.agentId}/activity`)
  const { agent, counts } = activity ?? {}
  const verdicts = (activity?.verdicts ?? []).filter(({ id }) => id !== view.id).slice(0, 5)
  return (
    <section aria-labelledby="who">
      <h2 id="who">Who asks</h2>
      <Facts
        facts={[
          [
            'Agent',
            <a href={hrefOf('agents', view.agentId)}>
              <Text value={view.agentName ?? 'not registered any more'} />
            </a>,
          ],
          ['Owner', view.ownerId ?? ''],
          ['Trust', agent && <Trust score={agent.trustScore} />],
          ['Status', agent?.status],
          ['Last 24 hours', counts && `${counts.hitlLast24h} held, ${counts.humanDeniedLast24h} denied by people`],
        ]}
      />
      {verdicts.length > 0 && (
        <>
          <h3>Last verdicts</h3>
          <ul class="lines">
            {verdicts.map(past => (
              <li key={past.id}>
                <a href={hrefOf('requests', past.id)}>
                  {past.method} <Text value={past.url} limit={120} />
                </a>
                <span class="hint">
                  {' '}
                  {outcomeOf(past)}, {agoText(past.decidedAt ?? past.timestamp, now.value)}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      <Changes view={view} />
    </section>
  )
}
