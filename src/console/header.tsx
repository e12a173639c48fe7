import { useEffect, useRef, useState } from 'preact/hooks'
import { Account } from './account.tsx'
import { Help } from './help.tsx'
import { useKeys } from './keys.ts'
import { liveness } from './live.ts'
import { askForNotifications } from './notify.ts'
import { Palette } from './palette.tsx'
import { notifications } from './prefs.ts'
import { waitingCount } from './queue/store.ts'
import { path } from './router.ts'
import { routes } from './routes.ts'
import { hasRole, me, signOut } from './session.ts'

const words = { off: 'Signed out', connecting: 'Connecting…', live: 'Live', silent: 'Not live' }

/** Left of the name of the open page, pixels: part of another name shows that there are more. */
const nearEdge = 48

export function Header() {
  const [helps, setHelps] = useState(false)
  const [goes, setGoes] = useState(false)
  const [showsAccount, setShowsAccount] = useState(false)
  useKeys({ '?': () => setHelps(true) })
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      if (document.querySelector('dialog[open]') === null) setGoes(true)
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
  const agent = me.value
  const at = path.value
  const pages = useRef<HTMLElement>(null)
  // On a narrow screen the names of the pages are wider than it. `scrollIntoView` would change where Tab goes next.
  useEffect(() => {
    const link = pages.current?.querySelector<HTMLElement>('[aria-current]')
    if (link) pages.current?.scrollTo({ left: link.offsetLeft - pages.current.offsetLeft - nearEdge })
  }, [at])
  return (
    <header class="top">
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <a class="brand" href="#/">
        Agent Gateway
      </a>
      <nav aria-label="Pages" ref={pages}>
        <ul>
          {routes
            .filter(({ name, roles }) => name !== undefined && hasRole(...roles))
            .map(({ pattern, name }) => (
              <li key={pattern}>
                <a href={`#${pattern}`} aria-current={isAt(pattern) ? 'page' : undefined}>
                  {name}
                  {pattern === '/' && waitingCount.value > 0 && <span class="count">{waitingCount.value}</span>}
                </a>
              </li>
            ))}
        </ul>
      </nav>
      <div class="tools">
        <span class="liveness" data-state={liveness.value}>
          {words[liveness.value]}
        </span>
        <button
          type="button"
          class="plain wide"
          aria-pressed={notifications.value}
          title="Notify me on the desktop when a request waits"
          onClick={() => void askForNotifications()}
        >
          Notify me
        </button>
        <button type="button" class="plain" title="Ctrl K" onClick={() => setGoes(true)}>
          Go to
        </button>
        <button type="button" class="plain wide" aria-label="Keyboard shortcuts" onClick={() => setHelps(true)}>
          ?
        </button>
        {agent !== undefined && (
          <button
            type="button"
            class="plain who"
            title={`${agent.id}: ${agent.roles.join(', ')}`}
            onClick={() => setShowsAccount(true)}
          >
            {agent.name}
          </button>
        )}
        <button type="button" class="plain wide" onClick={signOut}>
          Sign out
        </button>
      </div>
      {helps && <Help onClose={() => setHelps(false)} />}
      {showsAccount && <Account onClose={() => setShowsAccount(false)} />}
      {goes && <Palette onClose={() => setGoes(false)} />}
    </header>
  )
}

const isAt = (pattern: string): boolean =>
  pattern === '/' ? path.value === '/' || path.value.startsWith('/requests/') : path.value.startsWith(pattern)

/** The route is behind the `#`, so a link to a place in the page would change it. */
function skip(): void {
  document.getElementById('main')?.focus()
}
