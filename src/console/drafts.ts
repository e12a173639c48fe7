/** What was typed and not sent yet: comments by the id of their request, policies by `policy NAME`. It outlives the session. */
import { signal } from '@preact/signals'

const storageKey = 'drafts'

interface Kept {
  /** Id of the person who typed them. */
  readonly owner: string | undefined
  readonly texts: readonly (readonly [key: string, text: string])[]
}

const kept = takeKept()
let { owner } = kept
let isKept = false

export const drafts = signal<ReadonlyMap<string, string>>(new Map(kept.texts))

export function setDraft(key: string, text: string): void {
  const next = new Map(drafts.peek())
  if (text === '') next.delete(key)
  else next.set(key, text)
  drafts.value = next
}

/** Another person must not find them. */
export function giveDraftsTo(agentId: string): void {
  if (owner !== undefined && owner !== agentId) drafts.value = new Map()
  owner = agentId
}

/** Keeps them while the person is away to sign in. */
export function keepDrafts(): void {
  const leaving: Kept = { owner, texts: [...drafts.peek()] }
  sessionStorage.setItem(storageKey, JSON.stringify(leaving))
  isKept = true
}

function takeKept(): Kept {
  const text = sessionStorage.getItem(storageKey)
  sessionStorage.removeItem(storageKey)
  return text === null ? { owner: undefined, texts: [] } : JSON.parse(text)
}

export const policyKey = (name: string): string => `policy ${name}`

// A policy is much to type again; the browser asks before it closes the tab.
addEventListener('beforeunload', event => {
  const isLost = !isKept && [...drafts.peek().keys()].some(key => key.startsWith(policyKey('')))
  if (isLost) event.preventDefault()
})
