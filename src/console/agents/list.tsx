import { query } from '../api.ts'
import { Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import type { AgentPage, AgentSummary } from '../types.ts'
import { Status, Trust } from './parts.tsx'

export const AgentsPage: Page = () => {
  const reading = useRead<AgentPage>(`/agents${query({ page: pageNumber(), pageSize: 100 })}`)
  return (
    <Frame title="Agents">
      <Shown reading={reading}>
        {list => (
          <>
            <div class="card">
              <table class="grid" aria-label="Agents" aria-busy={reading.isReading}>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Status</th>
                    <th scope="col" class="wide-only">
                      Owner
                    </th>
                    <th scope="col" class="wide-only">
                      Policy
                    </th>
                    <th scope="col">Trust</th>
                  </tr>
                </thead>
                <tbody>
                  {list.items.map(agent => (
                    <AgentRow key={agent.id} agent={agent} />
                  ))}
                </tbody>
              </table>
            </div>
            <Pages list={list} of="agent" />
          </>
        )}
      </Shown>
    </Frame>
  )
}

function AgentRow({ agent: { id, name, ownerId, status, policyName, trustScore } }: { readonly agent: AgentSummary }) {
  return (
    <tr>
      <td>
        <a href={hrefOf('agents', id)}>
          <Text value={name} limit={120} />
        </a>
      </td>
      <td>
        <Status status={status} />
      </td>
      <td class="wide-only">
        <Text value={ownerId} limit={80} />
      </td>
      <td class="wide-only">
        {policyName === null ? (
          <span class="hint">none</span>
        ) : (
          <a href={hrefOf('policies', policyName)}>
            <Text value={policyName} limit={80} />
          </a>
        )}
      </td>
      <td>
        <Trust score={trustScore} />
      </td>
    </tr>
  )
}
