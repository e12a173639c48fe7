/**
 * Messages between tabs of the console. Never the session: any script in this origin could ask for it. A tab that the person
 * opens from here gets it from the browser, which copies sessionStorage.
 */
import { signal } from '@preact/signals'

const channel = new BroadcastChannel('agent-gateway-console')

/** The address, behind `#`, that a tab without a session was opened for. */
export const askedFor = signal<string | undefined>(undefined)
/** Another tab has a session. */
export const isOpenElsewhere = signal(false)

interface TabEvents {
  readonly isSignedIn: () => boolean
  readonly onSignOut: () => void
}

export function connectTabs({ isSignedIn, onSignOut }: TabEvents): void {
  channel.addEventListener('message', ({ data }) => {
    if (data?.signedOut === true) onSignOut()
    if (data?.signedIn === true) isOpenElsewhere.value = true
    if (typeof data?.asksFor !== 'string' || !isSignedIn()) return
    channel.postMessage({ signedIn: true })
    if (data.asksFor.startsWith('#/')) askedFor.value = data.asksFor
  })
}

interface OpenedEvents {
  /** Ids of the requests that this person has opened. */
  readonly of: (agentId: string) => readonly string[]
  readonly onIds: (agentId: string, ids: readonly string[]) => void
}

/** Follows the requests that a person has opened, by their ids. */
export function onOpened({ of, onIds }: OpenedEvents): void {
  channel.addEventListener('message', ({ data }) => {
    if (typeof data?.asksOpened === 'string') {
      const ids = of(data.asksOpened)
      if (ids.length > 0) tellOpened(data.asksOpened, ids)
    }
    if (typeof data?.openedBy === 'string' && Array.isArray(data.ids)) onIds(data.openedBy, data.ids.map(String))
  })
}

export function tellOpened(openedBy: string, ids: readonly string[]): void {
  channel.postMessage({ openedBy, ids })
}

export function askOpened(agentId: string): void {
  channel.postMessage({ asksOpened: agentId })
}

export function tellSignOut(): void {
  channel.postMessage({ signedOut: true })
}

/** Asks the tabs that have a session to offer this page. */
export function askOthers(): void {
  channel.postMessage({ asksFor: location.hash })
}

/** Opens a link of the console in a new tab, which is signed in. Browsers copy no session where they open it by themselves. */
function openTab(event: MouseEvent): void {
  const isWanted = event.type === 'auxclick' ? event.button === 1 : event.ctrlKey || event.metaKey || event.shiftKey
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (!isWanted || link === null || link.origin !== location.origin || link.pathname !== location.pathname) return
  event.preventDefault()
  open(link.href, '_blank')
}

addEventListener('click', openTab)
addEventListener('auxclick', openTab)
// The tab that opened this one is not to be reached from here.
if (window.opener !== null) window.opener = null
