import { useState } from 'preact/hooks'
import { change } from '../api.ts'
import { Act } from '../parts/act.tsx'
import type { Role } from '../types.ts'
import type { AgentDialogProps } from './policy-dialog.tsx'

const meanings: readonly (readonly [role: Role, meaning: string])[] = [
  ['agent', 'sends requests through the gateway'],
  ['reviewer', 'decides requests that wait'],
  ['auditor', 'reads everything, changes nothing'],
  ['admin', 'reads, decides and changes everything'],
]

export function RolesDialog({ agent, onClose, onDone }: AgentDialogProps) {
  const [roles, setRoles] = useState<ReadonlySet<Role>>(new Set(agent.roles))
  const toggle = (role: Role) => {
    const next = new Set(roles)
    if (!next.delete(role)) next.add(role)
    setRoles(next)
  }
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
      <fieldset>
        <legend>Roles</legend>
        {meanings.map(([role, meaning], index) => (
          <label key={role} class="check">
            <input
              type="checkbox"
              checked={roles.has(role)}
              data-first={index === 0 ? '' : undefined}
              onChange={() => toggle(role)}
            />
            <span>
              <strong>{role}</strong> <span class="hint">{meaning}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </Act>
  )
}
