import { useId } from 'preact/hooks'
import { Choice } from '../parts/choice.tsx'
import { useRead } from '../parts/read.ts'
import type { PolicyPage, Role } from '../types.ts'

const meanings: readonly (readonly [role: Role, meaning: string])[] = [
  ['agent', 'sends requests through the gateway'],
  ['reviewer', 'decides requests that wait'],
  ['auditor', 'reads everything, changes nothing'],
  ['admin', 'reads, decides and changes everything'],
]

interface RolesProps {
  readonly roles: ReadonlySet<Role>
  readonly onChange: (roles: ReadonlySet<Role>) => void
  readonly isFirst?: boolean
}

export function RolesField({ roles, onChange, isFirst = false }: RolesProps) {
  const toggle = (role: Role) => {
    const next = new Set(roles)
    if (!next.delete(role)) next.add(role)
    onChange(next)
  }
  return (
    <fieldset>
      <legend>Roles</legend>
      {meanings.map(([role, meaning], index) => (
        <label key={role} class="check">
          <input
            type="checkbox"
            checked={roles.has(role)}
            data-first={isFirst && index === 0 ? '' : undefined}
            onChange={() => toggle(role)}
          />
          <span>
            <strong>{role}</strong> <span class="hint">{meaning}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}

interface PolicyProps {
  /** Empty: none. */
  readonly name: string
  readonly onChange: (name: string) => void
  /** What the empty choice means. */
  readonly none: string
  readonly isFirst?: boolean
}

export function PolicyField({ name, onChange, none, isFirst = false }: PolicyProps) {
  const { data } = useRead<PolicyPage>('/policies?pageSize=200')
  const options = [['', none], ...(data?.items ?? []).map(policy => [policy.name, policy.name] as const)] as const
  return <Choice label="Policy" value={name} options={options} onChange={onChange} isFirst={isFirst} />
}

/** Tags as they are typed: `name: value`, one a line. */
export function TagsField({ text, onInput }: { readonly text: string; readonly onInput: (text: string) => void }) {
  const id = useId()
  return (
    <div class="comment">
      <label htmlFor={id}>Tags, one a line</label>
      <textarea
        id={id}
        rows={3}
        value={text}
        spellcheck={false}
        placeholder="team: support"
        onInput={event => onInput(event.currentTarget.value)}
      />
      <p class="hint">Policies read them as agent.tags.NAME.</p>
    </div>
  )
}

export function tagsOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return Object.fromEntries(
    lines.map(line => {
      const colon = line.indexOf(':')
      return colon < 0 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
    }),
  )
}

export const tagsText = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
