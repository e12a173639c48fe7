import { useEffect, useState } from 'preact/hooks'
import { call } from '../api.ts'
import { now } from '../clock.ts'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { agoText } from '../text.ts'
import type { AgentActivity, HitlRequest } from '../types.ts'
import { Changes } from './changes.tsx'
import { outcomeOf } from './outcome.ts'

/** Who asks, how it stood before, and how this differs from what was approved before. */
export function Asker({ view }: { readonly view: HitlRequest }) {
  const [activity, setActivity] = useState<AgentActivity>()
  useEffect(() => {
    void call<AgentActivity>('GET', `/agents/${view.agentId}/activity`).then(
      answer => answer.ok && setActivity(answer.data),
    )
  }, [view.agentId])
  const verdicts = (activity?.verdicts ?? []).filter(({ id }) => id !== view.id).slice(0, 5)
  return (
    <section aria-labelledby="who">
      <h2 id="who">Who asks</h2>
      <dl class="pairs">
        <div>
          <dt>Agent</dt>
          <dd>
            <a href={hrefOf('agents', view.agentId)}>
              <Text value={view.agentName ?? 'not registered any more'} />
            </a>
          </dd>
        </div>
        <div>
          <dt>Owner</dt>
          <dd>
            <Text value={view.ownerId ?? ''} />
          </dd>
        </div>
        {activity !== undefined && (
          <>
            <div>
              <dt>Trust</dt>
              <dd>
                <meter min={0} max={1} value={activity.agent.trustScore} aria-label="Trust" />{' '}
                {activity.agent.trustScore.toFixed(2)}
              </dd>
            </div>
            <div>
              <dt>Status</dt>
              <dd>{activity.agent.status}</dd>
            </div>
            <div>
              <dt>Last 24 hours</dt>
              <dd>
                {activity.counts.hitlLast24h} held, {activity.counts.humanDeniedLast24h} denied by people
              </dd>
            </div>
          </>
        )}
      </dl>
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
