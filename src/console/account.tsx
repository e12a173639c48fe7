import { useState } from 'preact/hooks'
import { call, type Failure } from './api.ts'
import { Copy } from './parts/copy.tsx'
import { Dialog } from './parts/dialog.tsx'
import { Failed } from './parts/states.tsx'
import { PushSwitch } from './push-switch.tsx'
import { hasRole, me, signOut } from './session.ts'

interface LinkCode {
  readonly code: string
  readonly expiresAt: string
}

/** Who is signed in, and how that person binds an account of Slack. */
export function Account({ onClose }: { readonly onClose: () => void }) {
  const [made, setMade] = useState<LinkCode>()
  const [failure, setFailure] = useState<Failure>()
  const agent = me.value
  const make = async () => {
    const answer = await call<LinkCode>('POST', '/console/link-codes')
    setMade(answer.ok ? answer.data : undefined)
    setFailure(answer.ok ? undefined : answer.failure)
  }
  return (
    <Dialog title={agent?.name ?? 'Account'} onClose={onClose}>
      <p class="hint">
        {agent?.id}: {agent?.roles.join(', ')}
      </p>
      {hasRole('reviewer', 'admin') && document.querySelector('meta[name=slack]') !== null && (
        <>
          <p>
            To decide requests in Slack, press <b>Link my account</b> there and type a code into the form.
          </p>
          {made === undefined ? (
            <p class="actions">
              <button type="button" onClick={() => void make()}>
                Make a code for Slack
              </button>
            </p>
          ) : (
            <div class="notice warn stack">
              <p>
                The code is good once, until <time>{new Date(made.expiresAt).toLocaleTimeString()}</time>. Type it in
                Slack yourself: whoever has it decides as you.
              </p>
              <p class="secret">
                <code data-code>{made.code}</code>
                <Copy text={made.code} />
              </p>
            </div>
          )}
        </>
      )}
      {hasRole('reviewer', 'admin') && <PushSwitch />}
      {failure && <Failed failure={failure} />}
      <p class="actions">
        <button type="button" onClick={signOut}>
          Sign out
        </button>
        <button type="button" onClick={onClose} data-first>
          Close
        </button>
      </p>
    </Dialog>
  )
}
