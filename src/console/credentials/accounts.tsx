import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { toast } from '../notices.ts'
import { Act } from '../parts/act.tsx'
import { Shown, When } from '../parts/frame.tsx'
import { Mark } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { credentialTones } from '../parts/tones.ts'
import { hrefOf } from '../router.ts'
import { isAdmin } from '../session.ts'
import { timeText } from '../text.ts'
import type { Account } from '../types.ts'

export function Accounts({ name }: { readonly name: string }) {
  const reading = useRead<readonly Account[]>(`/credentials/${encodeURIComponent(name)}/accounts`)
  return (
    <Shown reading={reading}>
      {accounts =>
        accounts.length > 0 && (
          <ul aria-label={`Accounts of ${name}`}>
            {accounts.map(account => (
              <li key={`${account.agentId} ${account.ownerId}`}>
                <span>
                  {account.agentId === null ? (
                    <Text value={account.ownerId ?? 'all agents'} limit={200} />
                  ) : (
                    <a href={hrefOf('agents', account.agentId)}>{account.agentId}</a>
                  )}
                </span>{' '}
                <AccountState name={name} account={account} mayChange={isAdmin.value} onChanged={reading.again} />
              </li>
            ))}
          </ul>
        )
      }
    </Shown>
  )
}

interface AccountProps {
  readonly name: string
  readonly account: Account
  readonly mayChange: boolean
  readonly onChanged: () => void
}

/** Connected as whom, by whom, until when; and what a person can do with it. */
export function AccountState({ name, account, mayChange, onChanged }: AccountProps) {
  const { state, login, connectedAt, expiresAt, problem, wantedScope, grantableScope } = account
  const [isEnding, setEnding] = useState(false)
  const query = queryOf(account)
  const end = async () => {
    const answer = await call<{ readonly revoked: boolean }>(
      'DELETE',
      `/credentials/${encodeURIComponent(name)}/token${query}`,
    )
    if (!answer.ok) return answer.failure
    if (answer.data.revoked) toast('Disconnected, and revoked at its server.', 'good')
    else toast('Disconnected. Its server has revoked nothing: revoke the access there by hand.', 'bad')
    return undefined
  }
  return (
    <>
      <Mark text={state} tone={credentialTones[state]} />{' '}
      {login !== null && (
        <>
          as <Text value={login} limit={200} />{' '}
        </>
      )}
      {connectedAt !== null && (
        <>
          since <When at={connectedAt} />{' '}
        </>
      )}
      {expiresAt !== null && <>until {timeText(expiresAt)} </>}
      {problem !== null && <Text value={problem} limit={400} />}
      {wantedScope !== null && <WantedScope scope={wantedScope} />}
      {mayChange && (
        <>
          <a href={`${hrefOf('connect', name)}${query}`}>Connect again</a>{' '}
          {grantableScope !== null && (
            <>
              <a href={`${hrefOf('connect', name)}${queryOf(account, grantableScope)}`}>Connect again with it</a>{' '}
            </>
          )}
          {state !== 'needed' && (
            <button type="button" onClick={() => setEnding(true)}>
              Disconnect…
            </button>
          )}
        </>
      )}
      {isEnding && (
        <Act
          title={`Disconnect ${name}?`}
          verb="Disconnect"
          act={end}
          onClose={() => setEnding(false)}
          onDone={() => {
            setEnding(false)
            onChanged()
          }}
        >
          <p>Requests that need the account are refused until somebody connects one again.</p>
        </Act>
      )}
    </>
  )
}

/** What upstreams have asked for: it is theirs to say, and a person's to grant. */
export const WantedScope = ({ scope }: { readonly scope: string }) => (
  <span class="said">
    An upstream wants the scope <Text value={scope} limit={400} />{' '}
  </span>
)

function queryOf({ agentId, ownerId }: Account, scope?: string): string {
  const query = new URLSearchParams({
    ...(agentId !== null && { agentId }),
    ...(ownerId !== null && { ownerId }),
    ...(scope !== undefined && { scope }),
  })
  return query.size === 0 ? '' : `?${query}`
}
