import { useMemo, useState } from 'preact/hooks'
import { call, query } from './api.ts'
import { useAsync } from './parts/async.ts'
import { Dialog } from './parts/dialog.tsx'
import { Text } from './parts/text.tsx'
import { rows } from './queue/store.ts'
import { whatOf } from './queue/what.tsx'
import { hrefOf } from './router.ts'
import { routes } from './routes.ts'
import { hasRole, isAdmin, mayRead } from './session.ts'
import type { AgentPage, PolicyPage } from './types.ts'

interface Entry {
  readonly kind: string
  readonly name: string
  readonly href: string
}

/** Entries that are shown. */
const most = 12
/** Of requests, agents or policies: however many wait, the others are in sight. */
const mostOfAKind = 6
/** How long the typing must rest before agents are searched, milliseconds. */
const restMs = 150
const none: readonly Entry[] = []

/** Goes anywhere: pages, requests that wait, agents, policies. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  // Agents and policies, for those who may read them.
  const wanted = text.trim()
  const { last: found = none } = useAsync(
    wanted !== '' && mayRead.peek() ? () => search(wanted) : undefined,
    [text],
    restMs,
  )
  const entries = useMemo(() => matching(text, found), [text, found])
  const go = (entry: Entry | undefined) => {
    if (entry === undefined) return
    onClose()
    location.hash = entry.href.slice(1)
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt((at + 1) % Math.max(1, entries.length))
    else if (event.key === 'ArrowUp') setAt((at - 1 + entries.length) % Math.max(1, entries.length))
    else if (event.key === 'Enter') go(entries[at])
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Page, request, agent or policy"
        aria-expanded="true"
        aria-controls="palette-entries"
        aria-activedescendant={entries[at] && `palette-${at}`}
        value={text}
        data-first
        onInput={event => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div id="palette-entries" class="palette" role="listbox" aria-label="Places">
        {entries.map((entry, index) => (
          <div
            key={entry.href}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onMouseDown={event => {
              event.preventDefault()
              go(entry)
            }}
          >
            <span class="hint">{entry.kind}</span> <Text value={entry.name} limit={120} />
          </div>
        ))}
      </div>
      {entries.length === 0 && <p class="hint">Nothing is named so.</p>}
    </Dialog>
  )
}

function matching(text: string, found: readonly Entry[]): readonly Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = ({ kind, name }: Entry) => words.every(word => `${kind} ${name}`.toLowerCase().includes(word))
  const pages = routes.flatMap(({ name, pattern, roles }): readonly Entry[] =>
    name !== undefined && hasRole(...roles) ? [{ kind: 'Page', name, href: `#${pattern}` }] : [],
  )
  const acts: readonly Entry[] = isAdmin.value
    ? [
        { kind: 'Do', name: 'Register an agent', href: '#/agents/new' },
        { kind: 'Do', name: 'Write a new policy', href: '#/new-policy' },
      ]
    : []
  const waiting = [...rows.peek().values()].map(({ view }): Entry => {
    const name = `${whatOf(view) ?? `${view.method} ${view.url}`} · ${view.agentName ?? ''}`
    return { kind: 'Request', name, href: hrefOf('requests', view.id) }
  })
  // What the gateway found may fit by an owner or a tag that is not shown.
  const others = text.trim() === '' ? [] : found
  return [...[...pages, ...acts].filter(fits), ...waiting.filter(fits).slice(0, mostOfAKind), ...others].slice(0, most)
}

/** @param text may begin with the kind, as entries do: `agent bot` */
async function search(text: string): Promise<readonly Entry[]> {
  const [, kind, part = ''] = /^(?:(agent|policy)\s+)?(.*)$/i.exec(text) ?? []
  const [agents, policies] = await Promise.all([
    call<AgentPage>('GET', `/agents${query({ search: part, pageSize: mostOfAKind })}`),
    call<PolicyPage>('GET', '/policies?pageSize=200'),
  ])
  const isNamed = ({ name }: { readonly name: string }) => name.toLowerCase().includes(part.toLowerCase())
  const named = policies.ok ? policies.data.items.filter(isNamed).slice(0, mostOfAKind) : []
  const found = [
    ...(agents.ok ? agents.data.items : []).map(({ id, name }) => ({
      kind: 'Agent',
      name,
      href: hrefOf('agents', id),
    })),
    ...named.map(({ name }) => ({ kind: 'Policy', name, href: hrefOf('policies', name) })),
  ]
  return kind === undefined ? found : found.filter(entry => entry.kind.toLowerCase() === kind.toLowerCase())
}
