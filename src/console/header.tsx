import { useState } from 'preact/hooks'
import { Help } from './help.tsx'
import { useKeys } from './keys.ts'
import { liveness } from './live.ts'
import { askForNotifications } from './notify.ts'
import { notifications } from './prefs.ts'
import { waitingCount } from './queue/store.ts'
import { path } from './router.ts'
import { routes } from './routes.ts'
import { hasRole, me, signOut } from './session.ts'

const words = { off: 'Signed out', connecting: 'Connecting…', live: 'Live', silent: 'Not live' }

export function Header() {
  const [helps, setHelps] = useState(false)
  useKeys({ '?': () => setHelps(true) })
  const agent = me.value
  return (
    <header class="top">
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <a class="brand" href="#/">
        Agent Gateway
      </a>
      <nav aria-label="Pages">
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
        <span class={`live ${liveness.value}`}>{words[liveness.value]}</span>
        <button
          type="button"
          class="plain wide"
          aria-pressed={notifications.value}
          title="Notify me on the desktop when a request waits"
          onClick={() => void askForNotifications()}
        >
          Notify me
        </button>
        <button type="button" class="plain" aria-label="Keyboard shortcuts" onClick={() => setHelps(true)}>
          ?
        </button>
        {agent !== undefined && (
          <span class="who" title={`${agent.id}: ${agent.roles.join(', ')}`}>
            {agent.name}
          </span>
        )}
        <button type="button" class="plain" onClick={signOut}>
          Sign out
        </button>
      </div>
      {helps && <Help onClose={() => setHelps(false)} />}
    </header>
  )
}

const isAt = (pattern: string): boolean =>
  pattern === '/' ? path.value === '/' || path.value.startsWith('/requests/') : path.value.startsWith(pattern)

/** The route is behind the `#`, so a link to a place in the page would change it. */
function skip(): void {
  document.getElementById('main')?.focus()
}
