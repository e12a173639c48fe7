import { useState } from 'preact/hooks'
import { Past } from '../history/past.tsx'
import { AgentBudgets } from '../parts/budgets.tsx'
import { Facts } from '../parts/facts.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { PolicyName } from '../parts/policy-name.tsx'
import { useRead } from '../parts/read.ts'
import { Status, Trust } from '../parts/status.tsx'
import { Text } from '../parts/text.tsx'
import { isAdmin, mayRead } from '../session.ts'
import { timeText } from '../text.ts'
import type { AgentActivity } from '../types.ts'
import { type Action, ActionDialog, actionsFor } from './actions.tsx'
import { AddedCredentials } from './credentials.tsx'
import { Incidents } from './incidents.tsx'
import { Keys } from './keys.tsx'
import { Quarantine } from './quarantine.tsx'
import { WhatItDoes } from './shapes.tsx'
import { TrustHistory } from './trust.tsx'

export const AgentPage: Page = ({ params: { id = '' } }) => <OneAgent key={id} id={id} />

/** One agent: its status and trust, why the trust changed, and its latest refused, held and decided requests. */
function OneAgent({ id }: { readonly id: string }) {
  const reading = useRead<AgentActivity>(`/agents/${encodeURIComponent(id)}/activity`)
  const [action, setAction] = useState<Action>()
  const agent = reading.data?.agent
  return (
    <Frame
      title={agent === undefined ? 'Agent' : <Text value={agent.name} limit={200} />}
      aside={
        agent !== undefined &&
        isAdmin.value &&
        actionsFor(agent).map(one => (
          <button key={one.name} type="button" class={one.tone} onClick={() => setAction(one)}>
            {one.name}…
          </button>
        ))
      }
    >
      <Shown reading={reading}>
        {activity => (
          <>
            <Quarantine activity={activity} />
            <Standing activity={activity} />
            <AgentBudgets agentId={activity.agent.id} />
            {mayRead.value && <Keys agent={activity.agent} />}
            <AddedCredentials agent={activity.agent} />
            {mayRead.value && <WhatItDoes agent={activity.agent} onChanged={reading.again} />}
            <TrustHistory activity={activity} />
            <Incidents incidents={activity.incidents} />
            <Verdicts activity={activity} />
          </>
        )}
      </Shown>
      {action !== undefined && agent !== undefined && (
        <ActionDialog
          action={action}
          agent={agent}
          onClose={() => setAction(undefined)}
          onDone={() => {
            setAction(undefined)
            reading.again()
          }}
        />
      )}
    </Frame>
  )
}

function Standing({ activity: { agent, counts } }: { readonly activity: AgentActivity }) {
  const tags = Object.entries(agent.tags).map(([name, value]) => `${name}: ${value}`)
  return (
    <section class="card" aria-label="Standing">
      <Facts
        facts={[
          ['Status', <Status status={agent.status} />],
          ['Trust', <Trust score={agent.trustScore} />],
          ['Policy', agent.policyName === null ? 'none' : <PolicyName name={agent.policyName} />],
          ['Owner', agent.ownerId],
          ['Roles', agent.roles.join(', ')],
          ['Last minute', `${counts.requestsLastMinute} requests`],
          ['Last 10 minutes', `${counts.deniedLast10m} denied by policy`],
          ['Last 24 hours', `${counts.hitlLast24h} held, ${counts.humanDeniedLast24h} denied by people`],
          ['Registered', timeText(agent.createdAt)],
          ['Subject at the identity provider', agent.externalSubject ?? undefined],
          ['Tags', tags.length > 0 ? tags.join(', ') : undefined],
          ['Id', agent.id],
        ]}
      />
    </section>
  )
}

function Verdicts({ activity: { agent, verdicts } }: { readonly activity: AgentActivity }) {
  return (
    <section class="stack" aria-labelledby="verdicts">
      <h2 id="verdicts">Last verdicts</h2>
      {verdicts.length === 0 ? (
        <p class="hint">No request of this agent was decided yet.</p>
      ) : (
        <>
          <ul class="records">
            {verdicts.map(past => (
              <Past key={past.id} past={past} />
            ))}
          </ul>
          <p>
            <a href={`#/history?agentId=${encodeURIComponent(agent.id)}`}>All of its history</a>
          </p>
        </>
      )}
    </section>
  )
}
