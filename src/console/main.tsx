import { render } from 'preact'
import { App } from './app.tsx'
import { resume, signInWithCode } from './session.ts'
import './styles/base.css'
import './styles/layout.css'
import './styles/parts.css'
import './styles/queue.css'
import './styles/request.css'

async function start(): Promise<void> {
  const place = document.getElementById('app')
  if (place === null) return
  const code = takeCode()
  const failure = code === undefined ? await resume().then(() => undefined) : await signInWithCode(code)
  render(<App failure={failure} />, place)
}

/** The code of a one-time link. It is removed from the address and the history at once. */
function takeCode(): string | undefined {
  const [, code] = /^#code=([\w-]+)$/.exec(location.hash) ?? []
  if (code !== undefined) history.replaceState(null, '', '#/')
  return code
}

void start()
