import { useMemo, useState } from 'preact/hooks'
import { failureOf, offline, query, send } from '../api.ts'
import { toast } from '../notices.ts'
import { FilterText, Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Refresh, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { save } from '../parts/save.ts'
import { Empty } from '../parts/states.tsx'
import { search } from '../router.ts'
import type { AgentPage, AuditPage as List } from '../types.ts'
import { Entry } from './entry.tsx'
import { FilterTime } from './filter-time.tsx'
import { Verification } from './verification.tsx'

/** What people and the gateway decided and changed, in the order in which it is chained. */
export const AuditPage: Page = () => {
  const filters = search.value
  const of = (name: string) => filters.get(name) ?? undefined
  const asked = { action: of('action'), actor: of('actor'), subject: of('subject'), from: of('from'), to: of('to') }
  const reading = useRead<List>(`/audit${query({ ...asked, before: of('before'), page: pageNumber(), pageSize: 50 })}`)
  const agents = useRead<AgentPage>('/agents?pageSize=200')
  const names = useMemo(() => new Map(agents.data?.items.map(({ id, name }) => [id, name])), [agents.data])
  return (
    <Frame
      title="Audit trail"
      aside={
        <>
          <Refresh reading={reading} />
          <Export />
        </>
      }
    >
      <div class="filters">
        <FilterText name="action" label="Action" placeholder="hitl.approve" />
        <FilterText name="actor" label="Actor, by id" />
        <FilterText name="subject" label="Subject, by id or name" />
        <FilterTime name="from" label="From" />
        <FilterTime name="to" label="Before" />
      </div>
      <Verification />
      <Shown reading={reading}>
        {list => (
          <>
            {list.items.length === 0 ? (
              <Empty
                title={list.next === null ? 'No entry matches' : 'No entry matches among those that were looked at'}
              >
                <p>Action, actor and subject must match whole.</p>
              </Empty>
            ) : (
              <ol class="records" reversed aria-label="Entries, latest first" aria-busy={reading.isReading}>
                {list.items.map(entry => (
                  <Entry key={entry.seq} entry={entry} names={names} />
                ))}
              </ol>
            )}
            <Pages list={list} of="entry" many="entries" />
          </>
        )}
      </Shown>
    </Frame>
  )
}

/** The whole trail as a file. A link cannot carry the token, so the page fetches it. */
function Export() {
  const [isBusy, setBusy] = useState(false)
  const exportAll = async () => {
    setBusy(true)
    const answer = await send('GET', '/audit/export')
    const blob = answer?.ok === true ? await answer.blob().catch(() => undefined) : undefined
    setBusy(false)
    if (blob === undefined) {
      const failure = answer === undefined || answer.ok ? offline : await failureOf(answer)
      toast(`The trail was not saved. ${failure.detail}`, 'bad')
      return
    }
    save(blob, 'audit.jsonl')
    toast('The trail was saved as audit.jsonl.', 'good')
  }
  return (
    <button type="button" disabled={isBusy} onClick={() => void exportAll()}>
      {isBusy ? 'Exporting…' : 'Export all'}
    </button>
  )
}
