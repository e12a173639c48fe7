import { useEffect, useState } from 'preact/hooks'
import { query } from '../api.ts'
import { onEvent } from '../live.ts'
import { FilterChoice, FilterText, Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { type Reading, useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { search, setSearch } from '../router.ts'
import { plural } from '../text.ts'
import type { PastRequestPage } from '../types.ts'
import { Past } from './past.tsx'

const statuses = [
  ['all', 'All'],
  ['approved', 'Approved'],
  ['denied', 'Denied'],
  ['expired', 'Expired'],
  ['withdrawn', 'Withdrawn by the agent'],
  ['failed', 'Failed, no answer'],
  ['unknown', 'Outcome unknown'],
] as const

/** Requests that no longer wait: they outlive their expiry. */
export const HistoryPage: Page = () => {
  const filters = search.value
  const of = (name: string) => filters.get(name) ?? undefined
  const status = statuses.find(([value]) => value === of('status'))?.[0] ?? 'all'
  const asked = {
    status,
    agentId: of('agentId'),
    host: of('host'),
    rule: of('rule'),
    before: of('before'),
    page: pageNumber(),
    pageSize: 50,
  }
  const reading = useRead<PastRequestPage>(`/hitl/history${query(asked)}`)
  return (
    <Frame title="History" aside={<News reading={reading} />}>
      <div class="filters">
        <FilterChoice name="status" label="Outcome" options={statuses} />
        <FilterText name="host" label="Host" placeholder="api.example" />
        <FilterText name="rule" label="Rule" />
        {asked.agentId !== undefined && <AgentChip reading={reading} id={asked.agentId} />}
      </div>
      <Shown reading={reading}>
        {list => (
          <>
            {list.items.length === 0 ? (
              <Empty title={filters.size === 0 ? 'Nothing was decided yet' : 'Nothing matches'}>
                <p>Requests appear here when they are decided, withdrawn or expired.</p>
              </Empty>
            ) : (
              <ul class="records" aria-label="Requests, latest first" aria-busy={reading.isReading}>
                {list.items.map(past => (
                  <Past key={past.id} past={past} />
                ))}
              </ul>
            )}
            <Pages list={list} of="request" />
          </>
        )}
      </Shown>
    </Frame>
  )
}

const endings = new Set(['approved', 'denied', 'withdrawn', 'expired', 'completed', 'failed', 'unknown'])

/** The list does not move under the hand: the reader fetches what is new. */
function News({ reading: { data, again } }: { readonly reading: Reading<PastRequestPage> }) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  useEffect(
    () =>
      onEvent(({ type, hitlId }) => hitlId !== null && endings.has(type) && setIds(old => new Set(old).add(hitlId))),
    [],
  )
  useEffect(() => setIds(new Set()), [data])
  if (ids.size === 0) return null
  return (
    <button type="button" onClick={again}>
      Show {plural(ids.size, 'change')}
    </button>
  )
}

function AgentChip({ reading: { data }, id }: { readonly reading: Reading<PastRequestPage>; readonly id: string }) {
  const name = data?.items.find(({ agentId }) => agentId === id)?.agentName ?? id
  return (
    <span class="chip">
      Agent: <Text value={name} limit={60} />
      <button
        type="button"
        class="plain"
        aria-label="Requests of all agents"
        onClick={() => setSearch({ agentId: undefined, page: undefined, before: undefined })}
      >
        ×
      </button>
    </span>
  )
}
