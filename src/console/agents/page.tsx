import { useState } from 'preact/hooks'
import { Past } from '../history/past.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { isAdmin, mayRead } from '../session.ts'
import { timeText } from '../text.ts'
import type { Agent, AgentActivity } from '../types.ts'
import { type Action, ActionDialog, actionsFor } from './actions.tsx'
import { Incidents } from './incidents.tsx'
import { Status, Trust } from './parts.tsx'
import { TrustHistory } from './trust.tsx'

export const AgentPage: Page = ({ params: { id = '' } }) => <OneAgent key={id} id={id} />

/** One agent: its standing, why its trust moved, and what was refused, held and decided of late. */
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
            <Facts activity={activity} />
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

function Facts({ activity: { agent, counts } }: { readonly activity: AgentActivity }) {
  const tags = Object.entries(agent.tags).map(([name, value]) => `${name}: ${value}`)
  return (
    <section class="card" aria-label="Standing">
      <dl class="pairs">
        <div>
          <dt>Status</dt>
          <dd>
            <Status status={agent.status} />
          </dd>
        </div>
        <div>
          <dt>Trust</dt>
          <dd>
            <Trust score={agent.trustScore} />
          </dd>
        </div>
        <div>
          <dt>Policy</dt>
          <dd>
            <PolicyOf agent={agent} />
          </dd>
        </div>
        <Fact name="Owner" value={agent.ownerId} />
        <Fact name="Roles" value={agent.roles.join(', ')} />
        <Fact name="Last minute" value={`${counts.requestsLastMinute} requests`} />
        <Fact name="Last 10 minutes" value={`${counts.deniedLast10m} denied by policy`} />
        <Fact
          name="Last 24 hours"
          value={`${counts.hitlLast24h} held, ${counts.humanDeniedLast24h} denied by people`}
        />
        <Fact name="Registered" value={timeText(agent.createdAt)} />
        {agent.externalSubject !== null && (
          <Fact name="Subject at the identity provider" value={agent.externalSubject} />
        )}
        {tags.length > 0 && <Fact name="Tags" value={tags.join(', ')} />}
        <Fact name="Id" value={agent.id} />
      </dl>
    </section>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Text value={value} limit={400} />
      </dd>
    </div>
  )
}

function PolicyOf({ agent: { policyName } }: { readonly agent: Agent }) {
  if (policyName === null) return <>none</>
  const name = <Text value={policyName} limit={120} />
  return mayRead.value ? <a href={hrefOf('policies', policyName)}>{name}</a> : name
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
