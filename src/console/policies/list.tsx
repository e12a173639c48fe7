import { query } from '../api.ts'
import { Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import type { PolicyPage as List, PolicySummary } from '../types.ts'
import { EffectMark } from './effect.tsx'

export const PoliciesPage: Page = () => {
  const reading = useRead<List>(`/policies${query({ page: pageNumber(), pageSize: 100 })}`)
  return (
    <Frame title="Policies">
      <Shown reading={reading}>
        {list =>
          list.items.length === 0 ? (
            <Empty title="There is no policy">
              <p>Policy:UnassignedEffect decides every request.</p>
            </Empty>
          ) : (
            <>
              <div class="card">
                <table class="grid" aria-label="Policies" aria-busy={reading.isReading}>
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Default</th>
                      <th scope="col">Rules</th>
                      <th scope="col" class="wide-only">
                        Owner
                      </th>
                      <th scope="col" class="wide-only">
                        From
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {list.items.map(policy => (
                      <PolicyRow key={policy.name} policy={policy} />
                    ))}
                  </tbody>
                </table>
              </div>
              <Pages list={list} of="policy" many="policies" />
            </>
          )
        }
      </Shown>
    </Frame>
  )
}

const sources = { config: 'configuration', file: 'file', api: 'API' }

function PolicyRow({ policy: { name, description, owner, ruleCount, source, ...policy } }: { policy: PolicySummary }) {
  return (
    <tr>
      <td>
        <a href={hrefOf('policies', name)}>
          <Text value={name} limit={120} />
        </a>
        {description !== '' && (
          <p class="hint">
            <Text value={description} limit={200} />
          </p>
        )}
      </td>
      <td>
        <EffectMark effect={policy.default} />
      </td>
      <td>{ruleCount}</td>
      <td class="wide-only">
        <Text value={owner} limit={80} />
      </td>
      <td class="wide-only">{sources[source]}</td>
    </tr>
  )
}
