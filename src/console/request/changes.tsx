import { call, query } from '../api.ts'
import type { Difference } from '../body/values.ts'
import { now } from '../clock.ts'
import { useAsync } from '../parts/async.ts'
import { Table } from '../parts/table.tsx'
import { Cut } from '../parts/text.tsx'
import { groupOf } from '../queue/choice.ts'
import { hrefOf } from '../router.ts'
import { agoText, type TextKind } from '../text.ts'
import type { HitlRequest, PastRequestPage } from '../types.ts'
import { type Comparison, compareRequests } from './differences.ts'
import { readRequest } from './exact.ts'

export interface Earlier {
  readonly view: HitlRequest
  readonly comparisons: readonly Comparison[]
}

/** The last request like this one that was approved, compared with it; `none` when there is none, undefined until that is known. */
export const useEarlier = (view: HitlRequest): Earlier | 'none' | undefined =>
  useAsync(() => findEarlier(view), [view.id]).current

/** How the request differs from the last one of its group that was approved. */
export function Changes({ earlier }: { readonly earlier: Earlier | 'none' | undefined }) {
  if (earlier === undefined) return null
  if (earlier === 'none') return <p class="hint">No request like this one was approved lately.</p>
  const { comparisons } = earlier
  const others = comparisons.filter(({ isSame }) => !isSame)
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">What changed</h2>
      <p>
        Compared with the <a href={hrefOf('requests', earlier.view.id)}>last one like it that was approved</a>,{' '}
        {agoText(earlier.view.decidedAt ?? earlier.view.timestamp, now.value)}
      </p>
      {others.map(comparison => (
        <Differing key={comparison.part} comparison={comparison} />
      ))}
      <p>{sameText(comparisons)}</p>
    </section>
  )
}

/** What is the same in all of them. */
export function sameText(comparisons: readonly Comparison[]): string {
  const same = comparisons.filter(({ isSame }) => isSame).map(({ part }) => part.toLowerCase())
  if (same.length === comparisons.length) return 'Query, header fields and body are the same.'
  return same.length === 0 ? '' : `The same: ${same.join(', ')}.`
}

function Differing({ comparison: { part, differences, kind, note } }: { readonly comparison: Comparison }) {
  const value = (at: number) => (difference: Difference) => <DifferingValue value={difference.values[at]} kind={kind} />
  return (
    <>
      {differences.length > 0 && (
        <Table
          caption={part}
          items={differences}
          columns={[
            {
              name: 'Where',
              kind: 'row',
              cell: ({ where }) => <Cut pieces={[{ text: where }]} kind={kind} first={200} />,
            },
            { name: 'Approved', cell: value(0) },
            { name: 'Now', cell: value(1) },
          ]}
        />
      )}
      {note !== undefined && (
        <p class="hint">
          {part}: {note}
        </p>
      )}
    </>
  )
}

interface DifferingProps {
  readonly value: Difference['values'][number]
  readonly kind: TextKind
  /** Characters that are shown at first. */
  readonly first?: number
}

export function DifferingValue({ value, kind, first = 300 }: DifferingProps) {
  return value === undefined ? <em>not there</em> : <Cut pieces={[{ text: value }]} kind={kind} first={first} />
}

async function findEarlier(view: HitlRequest): Promise<Earlier | 'none'> {
  const { agentId, host, rule } = view
  const wanted = {
    status: 'approved',
    agentId,
    host: host?.replace(/:\d+$/, ''),
    rule: rule ?? undefined,
    pageSize: 50,
  }
  const list = await call<PastRequestPage>('GET', `/hitl/history${query(wanted)}`)
  const like = list.ok
    ? list.data.items.find(past => past.id !== view.id && groupOf(past) === groupOf(view))
    : undefined
  if (like === undefined) return 'none'
  const answer = await readRequest(like.id)
  return answer.ok ? { view: answer.data, comparisons: await compareRequests([answer.data, view]) } : 'none'
}
