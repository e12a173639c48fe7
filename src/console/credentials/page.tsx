import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { toast } from '../notices.ts'
import { Frame, Refresh, Shown, When } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { Mark } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { credentialTones } from '../parts/tones.ts'
import { hrefOf } from '../router.ts'
import { isAdmin } from '../session.ts'
import { timeText } from '../text.ts'
import type { Credential } from '../types.ts'
import { Accounts, WantedScope } from './accounts.tsx'

/** How the credentials of upstreams are in this gateway, never what they are. */
export const CredentialsPage: Page = () => {
  const reading = useRead<readonly Credential[]>('/credentials')
  return (
    <Frame title="Credentials" aside={<Refresh reading={reading} />}>
      <p class="hint">What the gateway adds to requests, as this gateway has it. Values are never shown.</p>
      <Shown reading={reading}>
        {credentials =>
          credentials.length === 0 ? (
            <Empty title="No credential has a name">
              <p>Those of "Credentials" in the settings are listed here.</p>
            </Empty>
          ) : (
            <ul class="records" aria-label="Credentials">
              {credentials.map(credential => (
                <CredentialRecord key={credential.name} credential={credential} onRenewed={reading.again} />
              ))}
            </ul>
          )
        }
      </Shown>
    </Frame>
  )
}

const perText = {
  Agent: 'an account for each agent',
  Owner: 'an account for each owner',
  All: 'one account for all agents',
} as const

interface RecordProps {
  readonly credential: Credential
  readonly onRenewed: () => void
}

function CredentialRecord({ credential, onRenewed }: RecordProps) {
  const { name, type, per, hosts, state, usable, expiresAt, renewedAt, lastUsedAt, problem, wantedScope } = credential
  return (
    <li class="record">
      <span class="record-what">
        <Mark text={state} tone={credentialTones[state]} /> <Text value={name} limit={120} />
      </span>
      {isAdmin.value && per === null && !ofAgents.has(type) && <Renew name={name} onRenewed={onRenewed} />}
      {isAdmin.value && per === 'All' && <a href={hrefOf('connect', name)}>Connect account</a>}
      <span class="record-more">
        <span>{type}</span>
        {per !== null && <span>{perText[per]}</span>}
        <span class="record-what">
          {hosts.length === 0 ? 'for no host' : <Text value={hosts.join(', ')} limit={400} />}
        </span>
        {state !== 'unused' && <span>{usable ? 'requests get it' : 'requests do not get it'}</span>}
        {expiresAt !== null && <span>until {timeText(expiresAt)}</span>}
        {renewedAt !== null && (
          <span>
            renewed <When at={renewedAt} />
          </span>
        )}
        {lastUsedAt !== null && (
          <span>
            last used <When at={lastUsedAt} />
          </span>
        )}
      </span>
      {problem !== null && (
        <span class="said">
          <Text value={problem} limit={400} />
        </span>
      )}
      {per === null && wantedScope !== null && <WantedScope scope={wantedScope} />}
      {per !== null && <Accounts name={name} />}
    </li>
  )
}

/** Each agent has its own, for the token with which it calls. */
const ofAgents: ReadonlySet<Credential['type']> = new Set(['AgentTokenExchange', 'IdJag'])

/** It takes no right away and sends nothing to the upstream, so no step of confirmation precedes it. */
function Renew({ name, onRenewed }: { readonly name: string; readonly onRenewed: () => void }) {
  const [isBusy, setBusy] = useState(false)
  const renew = async () => {
    setBusy(true)
    const answer = await call<Credential>('POST', `/credentials/${encodeURIComponent(name)}/renew`)
    setBusy(false)
    if (!answer.ok) toast(answer.failure.detail, 'bad')
    else if (answer.data.problem !== null) toast(`${name} was not renewed.`, 'bad')
    else toast(`${name} was renewed.`, 'good')
    onRenewed()
  }
  return (
    <button type="button" disabled={isBusy} aria-label={`Renew ${name}`} onClick={() => void renew()}>
      {isBusy ? 'Renewing…' : 'Renew'}
    </button>
  )
}
