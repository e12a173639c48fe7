import { render } from 'preact'
import type { Failure } from './api.ts'
import { App } from './app.tsx'
import { keepFocus } from './focus.ts'
import { returnFromProvider } from './oidc.ts'
import { resume, signInWithCode } from './session.ts'
import './styles/base.css'
import './styles/layout.css'
import './styles/parts.css'
import './styles/queue.css'
import './styles/request.css'
import './styles/body.css'

async function start(): Promise<void> {
  const place = document.getElementById('app')
  if (place === null) return
  keepFocus()
  render(<App failure={await begin()} />, place)
}

/** Signs in by a link or at the provider, or takes up the session. */
async function begin(): Promise<Failure | undefined> {
  const code = takeCode()
  if (code !== undefined) return signInWithCode(code)
  const returned = await returnFromProvider()
  if (returned === undefined) await resume()
  return returned?.failure
}

/** The code of a one-time link. It is removed from the address and the history at once. */
function takeCode(): string | undefined {
  const [, code] = /^#code=([\w-]+)$/.exec(location.hash) ?? []
  if (code !== undefined) history.replaceState(null, '', '#/')
  return code
}

void start()
