import { useState } from 'preact/hooks'
import { call, change, type Failure } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { ShownOnce } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Text } from '../parts/text.tsx'
import type { Agent, Role } from '../types.ts'
import { PolicyField, RolesField, TagsField, tagsOf, tagsText } from './agent-form.tsx'

export interface AgentDialogProps {
  readonly agent: Agent
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Chooses the policy that decides the agent's requests. */
export function PolicyDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const [name, setName] = useState(agent.policyName ?? '')
  const act = () => change('PUT', `/agents/${agent.id}/policy`, { body: { policyName: name === '' ? null : name } })
  return (
    <Act
      title="Policy of this agent"
      verb="Assign"
      tone="primary"
      isBlocked={name === (agent.policyName ?? '')}
      act={act}
      said={name === '' ? 'The agent has no policy.' : `The agent is under ${name}.`}
      onClose={onClose}
      onDone={onDone}
    >
      <PolicyField name={name} onChange={setName} none="none" isFirst />
      <p class="hint">It decides from the next request on. Without a policy, Policy:UnassignedEffect decides.</p>
    </Act>
  )
}

export function RolesDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const [roles, setRoles] = useState<ReadonlySet<Role>>(new Set(agent.roles))
  const isSame = roles.size === agent.roles.length && agent.roles.every(role => roles.has(role))
  const act = () => change('PUT', `/agents/${agent.id}/roles`, { body: { roles: [...roles] } })
  return (
    <Act
      title="Roles of this agent"
      verb="Assign"
      tone="primary"
      isBlocked={isSame}
      act={act}
      said="The roles are assigned."
      onClose={onClose}
      onDone={onDone}
    >
      <RolesField roles={roles} onChange={setRoles} isFirst />
    </Act>
  )
}

export function TagsDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const [text, setText] = useState(tagsText(agent.tags))
  return (
    <Act
      title="Tags of this agent"
      verb="Set"
      tone="primary"
      isBlocked={text === tagsText(agent.tags)}
      act={() => change('PUT', `/agents/${agent.id}/tags`, { body: { tags: tagsOf(text) } })}
      said="The tags are set."
      onClose={onClose}
      onDone={onDone}
    >
      <TagsField text={text} onInput={setText} />
    </Act>
  )
}

/** Gives the agent a new secret. The old one stops working. */
export function SecretDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const [secret, setSecret] = useState<string>()
  const act = async (): Promise<Failure | undefined> => {
    const answer = await call<{ readonly clientSecret: string }>('POST', `/agents/${agent.id}/rotate-secret`)
    if (answer.ok) setSecret(answer.data.clientSecret)
    return answer.ok ? undefined : answer.failure
  }
  if (secret !== undefined) {
    return (
      <Dialog title="The new secret" onClose={onDone}>
        <ShownOnce name="The secret" value={secret} />
        <p class="actions">
          <button type="button" onClick={onDone}>
            Close
          </button>
        </p>
      </Dialog>
    )
  }
  return (
    <Act title="Rotate the secret?" verb="Rotate" act={act} onClose={onClose} onDone={() => {}}>
      <p class="line">
        <Text value={agent.name} limit={200} />
      </p>
      <p data-first tabIndex={-1}>
        The old secret stops working at once: programs and people that sign in with it need the new one. Keys and tokens
        stay as they are.
      </p>
    </Act>
  )
}
