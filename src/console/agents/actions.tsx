import { change } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { Text } from '../parts/text.tsx'
import type { Agent } from '../types.ts'
import { type AgentDialogProps, PolicyDialog, RolesDialog, SecretDialog, TagsDialog } from './other-dialogs.tsx'

/** A change of the status, which the API has as an operation of its own. */
interface Change {
  readonly name: string
  readonly tone: 'danger' | 'primary' | undefined
  readonly operation: string
  readonly said: string
  readonly warning: string
}

/** Asks for more than a yes. */
interface Assignment {
  readonly name: 'Policy' | 'Roles' | 'Tags' | 'Secret'
  readonly tone: undefined
}

export type Action = Change | Assignment

const quarantine: Change = {
  name: 'Quarantine',
  tone: 'danger',
  operation: 'quarantine',
  said: 'The agent is quarantined.',
  warning:
    'Nothing of it passes until an admin lifts the quarantine, and what it has under way ends. Its requests stay in the queue; while it is quarantined they cannot be approved.',
}
const lift: Change = {
  name: 'Lift quarantine',
  tone: 'primary',
  operation: 'lift-quarantine',
  said: 'The quarantine is lifted.',
  warning: 'Its requests pass again as its policy says. Its trust is that of an agent on probation.',
}
const deactivate: Change = {
  name: 'Deactivate',
  tone: undefined,
  operation: 'deactivate',
  said: 'The agent is inactive.',
  warning: 'Nothing of it passes until it is activated again.',
}
const activate: Change = {
  name: 'Activate',
  tone: 'primary',
  operation: 'activate',
  said: 'The agent is active.',
  warning: 'Its requests pass again as its policy says.',
}
const revoke: Change = {
  name: 'Revoke',
  tone: 'danger',
  operation: 'revoke',
  said: 'The agent is revoked.',
  warning:
    'This cannot be undone: the agent never gets in again, under no token and no key, and its waiting requests cannot be approved.',
}

const dialogs = { Policy: PolicyDialog, Roles: RolesDialog, Tags: TagsDialog, Secret: SecretDialog }

const assignments = (['Policy', 'Roles', 'Tags', 'Secret'] as const).map(name => ({ name, tone: undefined }))

export function actionsFor({ status }: Agent): readonly Action[] {
  switch (status) {
    case 'Active':
      return [...assignments, deactivate, quarantine, revoke]
    case 'Quarantined':
      return [...assignments, lift, revoke]
    case 'Inactive':
      return [...assignments, activate, revoke]
    case 'Revoked':
      return []
  }
}

interface ActionProps extends AgentDialogProps {
  readonly action: Action
}

export function ActionDialog({ action, agent, onClose, onDone }: ActionProps) {
  if (!('operation' in action)) {
    const Dialog = dialogs[action.name]
    return <Dialog agent={agent} onClose={onClose} onDone={onDone} />
  }
  const { operation } = action
  return (
    <Act
      title={`${action.name}?`}
      verb={action.name}
      tone={action.tone ?? 'primary'}
      act={() => change('POST', `/agents/${agent.id}/${operation}`)}
      said={action.said}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="line">
        <Text value={agent.name} limit={200} /> of <Text value={agent.ownerId} limit={200} />
      </p>
      <p data-first tabIndex={-1}>
        {action.warning}
      </p>
    </Act>
  )
}
