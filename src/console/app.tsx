import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Failure } from './api.ts'
import { LiveBanner, TabBanner } from './banners.tsx'
import { Header } from './header.tsx'
import { dismiss, spoken, toasts } from './notices.ts'
import { Dialog } from './parts/dialog.tsx'
import { Empty } from './parts/states.tsx'
import { match, path } from './router.ts'
import { type Route, routes } from './routes.ts'
import { hasRole, session } from './session.ts'
import { SignIn } from './sign-in.tsx'
import { pageTitle, usePageTitle } from './title.ts'

/** @param failure what became of a one-time link */
export function App({ failure }: { readonly failure?: Failure | undefined }) {
  const held = session.value
  usePageTitle(held.kind === 'none' ? 'Sign in' : undefined)
  if (held.kind === 'none') {
    return (
      <main class="gate" data-ready>
        <h1>Agent Gateway</h1>
        <SignIn failure={failure} />
        <Said />
      </main>
    )
  }
  return (
    <>
      <Header />
      <LiveBanner />
      <TabBanner />
      <main id="main" tabIndex={-1} data-ready={held.kind}>
        <Outlet />
      </main>
      <Said />
      {held.kind === 'over' && (
        <Dialog title="Sign in again" onClose={() => {}} isModal>
          <SignIn />
        </Dialog>
      )}
    </>
  )
}

function Outlet() {
  const at = path.value
  const before = useRef(at)
  // Keys and screen readers begin where another page does.
  useLayoutEffect(() => {
    const main = document.getElementById('main')
    if (before.current === at || main === null) return
    before.current = at
    main.scrollTo(0, 0)
    main.focus({ preventScroll: true })
  }, [at])
  const found = findRoute(at)
  if (found === undefined) {
    return (
      <NoPage title="There is no such page">
        <a href="#/">To the queue</a>
      </NoPage>
    )
  }
  const { route, params } = found
  // While the session is over, what is open stays open behind the sign-in.
  if (session.value.kind === 'active' && !hasRole(...route.roles)) {
    return (
      <NoPage title="This page needs another role">It is for {route.roles.join(', ')}. An admin assigns roles.</NoPage>
    )
  }
  return <route.page key={route.pattern} params={params} />
}

function NoPage({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  usePageTitle(title)
  return (
    <Empty title={title}>
      <p>{children}</p>
    </Empty>
  )
}

function findRoute(
  at: string,
): { readonly route: Route; readonly params: Readonly<Record<string, string>> } | undefined {
  for (const route of routes) {
    const params = match(route.pattern, at)
    if (params !== undefined) return { route, params }
  }
  return undefined
}

/** What is said aside. The page that was opened is said beside what happened. */
function Said() {
  return (
    <>
      <div class="spoken" role="status" aria-live="polite">
        {pageTitle.value}
      </div>
      <div class="spoken" role="status" aria-live="polite">
        {spoken.value}
      </div>
      <section aria-label="Notices">
        <ul class="toasts">
          {toasts.value.map(({ id, text, tone }) => (
            <li key={id} class={`toast ${tone}`}>
              <span>{text}</span>
              <button type="button" class="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      </section>
    </>
  )
}
