/**
 * Which requests this person has opened, in this tab or in another one. It is kept with the session of the tab, and tabs
 * notify each other.
 */
import { effect, signal } from '@preact/signals'
import { me, session } from '../session.ts'
import { askOpened, onOpened, tellOpened } from '../tabs.ts'

/** Ids that are kept; the first ones go. */
const max = 5_000
const storageKey = 'opened'

export const opened = signal<ReadonlySet<string>>(new Set())

interface Kept {
  readonly agentId: string
  readonly ids: readonly string[]
}

let owner: string | undefined

effect(() => {
  const agentId = me.value?.id
  if (agentId === undefined || agentId === owner) return
  owner = agentId
  opened.value = new Set(kept(agentId))
  askOpened(agentId)
})

effect(() => {
  const held = session.value
  // Nothing of a person who has left stays in the browser.
  if (held.kind === 'over' && held.why === 'signedOut') sessionStorage.removeItem(storageKey)
})

/** Of another person, nothing is taken up. */
function kept(agentId: string): readonly string[] {
  const text = sessionStorage.getItem(storageKey)
  const stored: Kept | undefined = text === null ? undefined : JSON.parse(text)
  return stored?.agentId === agentId ? stored.ids : []
}

/** Its page is on the screen, with the body. */
export function noteOpened(id: string): void {
  if (owner === undefined || opened.peek().has(id)) return
  add([id])
  tellOpened(owner, [id])
}

function add(ids: readonly string[]): void {
  const next = new Set([...opened.peek(), ...ids].slice(-max))
  opened.value = next
  if (owner !== undefined) sessionStorage.setItem(storageKey, JSON.stringify({ agentId: owner, ids: [...next] }))
}

onOpened({
  of: agentId => (agentId === owner ? [...opened.peek()] : []),
  onIds: (agentId, ids) => {
    if (agentId === owner && ids.some(id => !opened.peek().has(id))) add(ids)
  },
})
