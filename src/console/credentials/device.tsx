/** A person connects an account with a code that is entered at the server, on any machine (RFC 8628). */
import { useEffect, useState } from 'preact/hooks'
import { call, type Failure, type Result } from '../api.ts'
import { Copy } from '../parts/copy.tsx'
import { Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import type { BegunConnection, ConnectedAccount, PendingConnection } from '../types.ts'

interface DeviceProps {
  /** Of `POST …/connected`. */
  readonly path: string
  readonly offer: BegunConnection & { readonly device: NonNullable<BegunConnection['device']> }
  readonly onEnd: (answer: Result<ConnectedAccount>) => void
}

export function DeviceCode({ path, offer, onEnd }: DeviceProps) {
  const { url, device, expiresAt } = offer
  const [begunAt] = useState(() => new Date().toISOString())
  useEffect(() => {
    const stopping = new AbortController()
    void untilDecided(path, offer, stopping.signal).then(answer => {
      if (!stopping.signal.aborted) onEnd(answer)
    })
    return () => stopping.abort()
  }, [device.state])
  return (
    <>
      <ol class="stack">
        <li>
          Open this address, on any machine:
          <p class="secret">
            <a href={url} target="_blank" rel="noopener noreferrer">
              <Text value={url} limit={400} />
            </a>
            <Copy text={url} name="Copy address" />
          </p>
        </li>
        <li>
          Enter this code there, and consent:
          <p class="secret">
            <code data-first tabIndex={-1} class="device-code">
              <Text value={device.code} limit={100} />
            </code>
            <Copy text={device.code} name="Copy code" />
          </p>
        </li>
      </ol>
      <p role="status">Waiting until you have consented. Leave this page open.</p>
      <p class="hint">
        <TimeLeft from={begunAt} until={expiresAt} hasBar />
      </p>
    </>
  )
}

/** Asks in the pace of the server. What one question could not learn, such as without a network, the next one may. */
async function untilDecided(
  path: string,
  { session, device: { state, everySeconds }, expiresAt }: DeviceProps['offer'],
  signal: AbortSignal,
): Promise<Result<ConnectedAccount>> {
  let seconds = everySeconds
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, seconds * 1_000))
    if (signal.aborted || Date.now() >= Date.parse(expiresAt)) return { ok: false, failure: expired }
    const answer = await call<ConnectedAccount | PendingConnection>('POST', path, { body: { session, state }, signal })
    if (answer.ok && !('everySeconds' in answer.data)) return { ...answer, data: answer.data }
    if (answer.ok && 'everySeconds' in answer.data) seconds = answer.data.everySeconds
    else if (!answer.ok && !passing.has(answer.failure.status)) return answer
  }
}

/** No answer came, too many calls, or a gateway that cannot answer now. */
const passing: ReadonlySet<number> = new Set([0, 429, 503])

const expired: Failure = {
  ...{ status: 409, code: 'wrong_state', problem: {} },
  detail: 'The code was not entered in time. Connect the account again.',
}
