import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { spanText, timeText } from '../text.ts'
import type { VerdictNumbers } from '../types.ts'

/** How often they are read again, milliseconds. */
const everyMs = 60_000

/** How people decided: how fast, who, and what nobody decided. */
export function Verdicts({ range }: { readonly range: 'hour' | 'day' }) {
  const { data } = useRead<VerdictNumbers>(`/overview/verdicts?range=${range}`, everyMs)
  if (data === undefined) return null
  const { since, approved, denied, expired, withdrawn, medianSeconds, reviewers } = data
  return (
    <section class="stack" aria-labelledby="verdict-numbers">
      <h2 id="verdict-numbers">
        Verdicts <span class="hint">since {timeText(since)}</span>
      </h2>
      <dl class="tiles" aria-label="Verdicts">
        <div class="tile">
          <dt>Median time to a verdict</dt>
          <dd>{medianSeconds === null ? '–' : spanText(medianSeconds * 1_000)}</dd>
        </div>
        <div class="tile">
          <dt>Approved</dt>
          <dd>{approved}</dd>
        </div>
        <div class="tile">
          <dt>Denied</dt>
          <dd>{denied}</dd>
        </div>
        <div class="tile">
          <dt>Expired without a verdict</dt>
          <dd class={expired > 0 ? 'bad-text' : undefined}>{expired}</dd>
        </div>
        <div class="tile">
          <dt>Withdrawn by agents</dt>
          <dd>{withdrawn}</dd>
        </div>
      </dl>
      {reviewers.length > 0 && (
        <Table
          label="Verdicts by reviewer"
          items={reviewers}
          columns={[
            { name: 'Reviewer', kind: 'row', cell: ({ id, name }) => <Text value={name || id} limit={120} /> },
            { name: 'Verdicts', kind: 'number', cell: ({ verdicts }) => verdicts },
            { name: 'Median time', kind: 'number', cell: one => spanText(one.medianSeconds * 1_000) },
          ]}
        />
      )}
    </section>
  )
}
