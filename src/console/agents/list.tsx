import { query } from '../api.ts'
import { FilterText, Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { PolicyName } from '../parts/policy-name.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Status, Trust } from '../parts/status.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf, search } from '../router.ts'
import { isAdmin } from '../session.ts'
import type { AgentPage, AgentSummary } from '../types.ts'

export const AgentsPage: Page = () => {
  const wanted = search.value.get('search') ?? undefined
  const reading = useRead<AgentPage>(`/agents${query({ page: pageNumber(), pageSize: 100, search: wanted })}`)
  return (
    <Frame
      title="Agents"
      aside={
        isAdmin.value && (
          <a class="button primary" href="#/agents/new">
            Register an agent
          </a>
        )
      }
    >
      <div class="filters">
        <FilterText name="search" label="Name, owner, id, policy or tag" />
      </div>
      <Shown reading={reading}>
        {list => (
          <>
            {list.items.length === 0 ? (
              <Empty title={wanted === undefined ? 'No agent is registered' : 'No agent matches'}>
                {isAdmin.value && (
                  <p>
                    <a href="#/agents/new">Register one</a>
                  </p>
                )}
              </Empty>
            ) : (
              <div class="card">
                <Table label="Agents" columns={columns} items={list.items} isBusy={reading.isReading} />
              </div>
            )}
            <Pages list={list} of="agent" />
          </>
        )}
      </Shown>
    </Frame>
  )
}

const columns: readonly Column<AgentSummary>[] = [
  {
    name: 'Name',
    cell: ({ id, name }) => <Text value={name} limit={120} href={hrefOf('agents', id)} />,
  },
  { name: 'Status', cell: ({ status }) => <Status status={status} /> },
  { name: 'Owner', kind: 'wide', cell: ({ ownerId }) => <Text value={ownerId} limit={80} /> },
  {
    name: 'Policy',
    kind: 'wide',
    cell: ({ policyName }) => (policyName === null ? <span class="hint">none</span> : <PolicyName name={policyName} />),
  },
  { name: 'Trust', cell: ({ trustScore }) => <Trust score={trustScore} /> },
]
