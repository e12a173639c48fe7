import { useMemo, useState } from 'preact/hooks'
import { failureOf, offline, query, send } from '../api.ts'
import { toast } from '../notices.ts'
import { FilterChoice, FilterText, FilterTime, Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Refresh, Shown, When } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { save } from '../parts/save.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import { search } from '../router.ts'
import type { AgentPage, AuditVerification, AuditPage as List, PastRequestPage } from '../types.ts'
import { asked, Entry, type Told } from './entry.tsx'
import { sentences } from './sentences.ts'

/** What people and the gateway decided and changed, in the order in which it is chained. */
export const AuditPage: Page = () => {
  const filters = search.value
  const of = (name: string) => filters.get(name) ?? undefined
  const wanted = { action: of('action'), actor: of('actor'), subject: of('subject'), from: of('from'), to: of('to') }
  const reading = useRead<List>(`/audit${query({ ...wanted, before: of('before'), page: pageNumber(), pageSize: 50 })}`)
  const agents = useRead<AgentPage>('/agents?pageSize=200')
  const names = useMemo(() => new Map(agents.data?.items.map(({ id, name }) => [id, name])), [agents.data])
  const past = useRead<PastRequestPage>('/hitl/history?pageSize=200')
  const told = useMemo(() => toldBy(reading.data, past.data), [reading.data, past.data])
  const actors = [['', 'Anybody'], ['gateway', 'The gateway'], ...names] as const
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
        <FilterChoice name="action" label="Action" options={actions} />
        <FilterChoice name="actor" label="Who" options={actors} />
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
                <p>A subject is found by its whole id or name.</p>
              </Empty>
            ) : (
              <ol class="records" reversed aria-label="Entries, latest first" aria-busy={reading.isReading}>
                {list.items.map(entry => (
                  <Entry key={entry.seq} entry={entry} names={names} told={told} />
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

const actions = [['', 'Anything'], ...Object.keys(sentences).map(action => [action, action] as const)] as const

/** What requests ask for: as entries of this page say, or in the words of their rule. */
function toldBy(list: List | undefined, past: PastRequestPage | undefined): ReadonlyMap<string, Told> {
  const suspended = (list?.items ?? []).flatMap(({ action, subject, details }) => {
    const what = asked(details)
    return what !== undefined && action === 'hitl.suspend' ? [[subject, { what, rule: null }] as const] : []
  })
  const known = (past?.items ?? []).map(one => {
    const what = [whatOf(one), `${one.method} ${one.url}`].filter(text => text !== null).join(', ')
    return [one.id, { what, rule: one.rule }] as const
  })
  return new Map([...suspended, ...known])
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

/** Whether the chain holds, as far as the gateway has verified it. */
export function Verification() {
  const { data } = useRead<AuditVerification>('/audit/verification')
  if (data === undefined) return null
  const { status, verifiedTo, verifiedAt, lastHash, firstBroken, why, reached } = data
  if (status === 'broken') {
    return (
      <p class="notice bad" role="alert">
        The trail is broken at entry {firstBroken}: <Text value={why ?? ''} />.
      </p>
    )
  }
  if (status === 'running' || verifiedAt === null)
    return <p class="notice">The trail is being verified; entry {reached} was reached.</p>
  return (
    <p class="hint verified">
      <span class="good-text">✓ Intact</span> up to entry {verifiedTo}, verified <When at={verifiedAt} />. Hash{' '}
      <code title={lastHash}>{lastHash.slice(0, 16)}…</code>
    </p>
  )
}
