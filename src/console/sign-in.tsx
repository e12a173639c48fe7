import { useState } from 'preact/hooks'
import type { Failure } from './api.ts'
import { leaveForProvider, type Provider, provider } from './oidc.ts'
import { Problem } from './parts/states.tsx'
import { session, signInWithSecret } from './session.ts'
import { isOpenElsewhere } from './tabs.ts'

const reasons = {
  expired: 'The session is over. Sign in to go on; what you typed is kept.',
  idle: 'Nobody used the page for 30 minutes. Sign in to go on; what you typed is kept.',
  signedOut: 'Signed out in another tab.',
}

/** @param failure what became of a one-time link */
export function SignIn({ failure }: { readonly failure?: Failure | undefined }) {
  const held = session.value
  return (
    <>
      {held.kind === 'none' && isOpenElsewhere.value && (
        <p class="notice">You are signed in in another tab. It offers to show this page there.</p>
      )}
      {held.kind === 'over' && <p class="notice warn">{reasons[held.why]}</p>}
      <Problem text={failure && linkProblem(failure)} />
      {provider !== undefined && <ProviderButton provider={provider} />}
      <SecretForm agentId={held.kind === 'over' ? held.agentId : ''} />
      <p class="hint">
        Or ask for a link that signs you in: <code>agent-gateway console --as NAME</code>
      </p>
    </>
  )
}

const linkProblem = ({ status, detail }: Failure): string =>
  status === 401 ? 'This link was used already, or is older than a minute. Ask for a new one.' : detail

function ProviderButton({ provider }: { readonly provider: Provider }) {
  const [problem, setProblem] = useState<string>()
  const leave = async () => setProblem((await leaveForProvider(provider)).detail)
  return (
    <div class="stack">
      <button type="button" class="primary" onClick={() => void leave()}>
        Sign in at {new URL(provider.authority).host}
      </button>
      <Problem text={problem} />
    </div>
  )
}

function SecretForm({ agentId }: { readonly agentId: string }) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const given = new FormData(event.currentTarget)
    setBusy(true)
    const failure = await signInWithSecret(String(given.get('agent')).trim(), String(given.get('secret')))
    setBusy(false)
    setProblem(
      failure &&
        (failure.status === 401 ? 'Agent id or secret is wrong, or the agent is not active.' : explain(failure)),
    )
  }
  return (
    <form class="stack" onSubmit={submit} autocomplete="on">
      <label>
        Agent id
        <input name="agent" required autocomplete="username" spellcheck={false} defaultValue={agentId} data-first />
      </label>
      <label>
        Secret
        <input name="secret" type="password" required autocomplete="current-password" />
      </label>
      <Problem text={problem} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  )
}

function explain({ status, detail }: Failure): string {
  return status === 403 ? 'This agent has none of the roles reviewer, auditor and admin.' : detail
}
