import { Mark } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { credentialTones } from '../parts/tones.ts'
import type { Credential } from '../types.ts'

/** What the gateway adds to the requests of an agent, by name; nothing where it adds nothing. */
export function AddedCredentials({ agentId }: { readonly agentId: string }) {
  const { data = [] } = useRead<readonly Credential[]>(`/credentials?agentId=${encodeURIComponent(agentId)}`)
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
          { name: 'State', cell: ({ state }) => <Mark text={state} tone={credentialTones[state]} /> },
        ]}
      />
      <p>
        <a href="#/credentials">All credentials</a>
      </p>
    </section>
  )
}
