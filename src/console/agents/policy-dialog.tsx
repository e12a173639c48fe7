import { useId, useState } from 'preact/hooks'
import { change } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { Shown } from '../parts/frame.tsx'
import { useRead } from '../parts/read.ts'
import type { Agent, PolicyPage } from '../types.ts'

export interface AgentDialogProps {
  readonly agent: Agent
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Chooses the policy that decides the agent's requests. */
export function PolicyDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const reading = useRead<PolicyPage>('/policies?pageSize=200')
  const [name, setName] = useState(agent.policyName ?? '')
  const id = useId()
  const act = () => change('PUT', `/agents/${agent.id}/policy`, { body: { policyName: name === '' ? null : name } })
  return (
    <Act
      title="Policy of this agent"
      verb="Assign"
      tone="primary"
      isBlocked={reading.data === undefined || name === (agent.policyName ?? '')}
      act={act}
      said={name === '' ? 'The agent has no policy.' : `The agent is under ${name}.`}
      onClose={onClose}
      onDone={onDone}
    >
      <Shown reading={reading}>
        {({ items }) => (
          <div class="comment">
            <label htmlFor={id}>Policy</label>
            <select id={id} data-first value={name} onChange={event => setName(event.currentTarget.value)}>
              <option value="">none</option>
              {items.map(policy => (
                <option key={policy.name} value={policy.name}>
                  {policy.name}
                </option>
              ))}
            </select>
            <p class="hint">It decides from the next request on. Without a policy, Policy:UnassignedEffect decides.</p>
          </div>
        )}
      </Shown>
    </Act>
  )
}
