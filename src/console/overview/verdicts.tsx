import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { spanText } from '../text.ts'
import type { PastRequest, PastRequestPage } from '../types.ts'

/** Requests of the history that are counted. */
const most = 200

/** How people decided: how fast, who, and what nobody decided. */
export function VerdictNumbers() {
  const { data } = useRead<PastRequestPage>(`/hitl/history?pageSize=${most}`)
  if (data === undefined || data.items.length === 0) return null
  const { items } = data
  const decided = items.filter(({ status }) => status === 'Approved' || status === 'Denied')
  const expired = items.filter(({ status }) => status === 'Expired').length
  return (
    <section class="stack" aria-labelledby="verdict-numbers">
      <h2 id="verdict-numbers">
        Verdicts <span class="hint">of the last {items.length} requests that no longer wait</span>
      </h2>
      <dl class="tiles" aria-label="Verdicts">
        <div class="tile">
          <dt>Median time to a verdict</dt>
          <dd>{decided.length === 0 ? '–' : spanText(median(decided.map(waitedMs)))}</dd>
        </div>
        <div class="tile">
          <dt>Approved</dt>
          <dd>{decided.filter(({ status }) => status === 'Approved').length}</dd>
        </div>
        <div class="tile">
          <dt>Denied</dt>
          <dd>{decided.filter(({ status }) => status === 'Denied').length}</dd>
        </div>
        <div class="tile">
          <dt>Expired without a verdict</dt>
          <dd class={expired > 0 ? 'bad-text' : undefined}>{expired}</dd>
        </div>
      </dl>
      {decided.length > 0 && (
        <Table
          label="Verdicts by reviewer"
          items={[...Map.groupBy(decided, reviewerOf)].sort(([, left], [, right]) => right.length - left.length)}
          columns={[
            { name: 'Reviewer', kind: 'row', cell: ([name]) => <Text value={name} limit={120} /> },
            { name: 'Verdicts', kind: 'number', cell: ([, list]) => list.length },
            { name: 'Median time', kind: 'number', cell: ([, list]) => spanText(median(list.map(waitedMs))) },
          ]}
        />
      )}
    </section>
  )
}

const reviewerOf = ({ decidedBy, people = {} }: PastRequest): string =>
  people[decidedBy ?? ''] || (decidedBy ?? 'nobody')

const waitedMs = ({ timestamp, decidedAt }: PastRequest): number =>
  Date.parse(decidedAt ?? timestamp) - Date.parse(timestamp)

function median(values: readonly number[]): number {
  const inOrder = values.toSorted((left, right) => left - right)
  return inOrder[inOrder.length >> 1] ?? 0
}
