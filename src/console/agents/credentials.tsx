import { AccountState } from '../credentials/accounts.tsx'
import { Mark } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { credentialTones } from '../parts/tones.ts'
import { hrefOf } from '../router.ts'
import type { Credential } from '../types.ts'

/** What the gateway adds to the requests of an agent, by name; nothing where it adds nothing. */
export function AddedCredentials({ agentId }: { readonly agentId: string }) {
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
            cell: ({ name, state, account }) =>
              account ? (
                <AccountState name={name} account={account} onChanged={again} />
              ) : (
                <Mark text={state} tone={credentialTones[state]} />
              ),
          },
          {
            name: 'Account',
            cell: ({ name, account }) =>
              account === null && (
                <a href={`${hrefOf('connect', name)}?agentId=${encodeURIComponent(agentId)}`}>Connect account</a>
              ),
          },
        ]}
      />
      <p>
        <a href="#/credentials">All credentials</a>
      </p>
    </section>
  )
}
