import { AccountState } from '../credentials/accounts.tsx'
import { Mark } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { credentialTones } from '../parts/tones.ts'
import { hrefOf } from '../router.ts'
import { isAdmin, mayRead, me } from '../session.ts'
import type { Agent, Credential } from '../types.ts'

interface AgentProps {
  readonly agent: Pick<Agent, 'id' | 'ownerId'>
}

/** For those who read all of them, and for the owner of the agent, who sees the accounts to connect. */
export const AddedCredentials = ({ agent }: AgentProps) =>
  mayRead.value || me.value?.ownerId === agent.ownerId ? <Added agent={agent} /> : null

/** What the gateway adds to the requests of an agent, by name; nothing where it adds nothing. */
function Added({ agent: { id: agentId, ownerId } }: AgentProps) {
  const mayConnect = ({ per }: Credential) => isAdmin.value || (per !== 'All' && me.value?.ownerId === ownerId)
  const { data = [], again } = useRead<readonly Credential[]>(`/credentials?agentId=${encodeURIComponent(agentId)}`)
  if (data.length === 0) return null
  return (
    <section class="card" aria-labelledby="added-credentials">
      <h2 id="added-credentials">Credentials that the gateway adds</h2>
      <Table
        label="Credentials that the gateway adds"
        items={data}
        columns={[
          { name: 'Name', kind: 'row', cell: ({ name }) => <Text value={name} limit={120} /> },
          { name: 'Hosts', cell: ({ hosts }) => <Text value={hosts.join(', ')} limit={400} /> },
          {
            name: 'State',
            cell: credential => {
              const { name, state, account } = credential
              if (!account) return <Mark text={state} tone={credentialTones[state]} />
              const mayChange = mayConnect(credential)
              return <AccountState name={name} account={account} mayChange={mayChange} onChanged={again} />
            },
          },
          {
            name: 'Account',
            cell: credential =>
              credential.account === null &&
              mayConnect(credential) && (
                <a href={`${hrefOf('connect', credential.name)}?agentId=${encodeURIComponent(agentId)}`}>
                  Connect account
                </a>
              ),
          },
        ]}
      />
      {mayRead.value && (
        <p>
          <a href="#/credentials">All credentials</a>
        </p>
      )}
    </section>
  )
}
