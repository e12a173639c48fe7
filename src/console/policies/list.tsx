import { query } from '../api.ts'
import { Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { PolicyName } from '../parts/policy-name.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { isAdmin } from '../session.ts'
import type { PolicyPage as List, PolicySummary } from '../types.ts'
import { EffectMark } from './effect.tsx'

export const PoliciesPage: Page = () => {
  const reading = useRead<List>(`/policies${query({ page: pageNumber(), pageSize: 100 })}`)
  return (
    <Frame
      title="Policies"
      aside={
        isAdmin.value && (
          <a class="button primary" href="#/new-policy">
            New policy
          </a>
        )
      }
    >
      <Shown reading={reading}>
        {list => (
          <>
            {list.items.length === 0 ? (
              <Empty title="There is no policy">
                <p>Policy:UnassignedEffect decides every request.</p>
                <p>
                  <a href="#/new-policy">Write the first one</a>
                </p>
              </Empty>
            ) : (
              <div class="card">
                <Table label="Policies" columns={columns} items={list.items} isBusy={reading.isReading} />
              </div>
            )}
            <Pages list={list} of="policy" many="policies" />
          </>
        )}
      </Shown>
    </Frame>
  )
}

const sources = { config: 'configuration', file: 'file', api: 'API' }

const columns: readonly Column<PolicySummary>[] = [
  {
    name: 'Name',
    cell: ({ name, description }) => (
      <>
        <PolicyName name={name} />
        {description !== '' && (
          <p class="hint">
            <Text value={description} limit={200} />
          </p>
        )}
      </>
    ),
  },
  { name: 'Default', cell: policy => <EffectMark effect={policy.default} /> },
  { name: 'Rules', cell: ({ ruleCount }) => ruleCount },
  { name: 'Owner', kind: 'wide', cell: ({ owner }) => <Text value={owner} limit={80} /> },
  { name: 'From', kind: 'wide', cell: ({ source }) => sources[source] },
]
