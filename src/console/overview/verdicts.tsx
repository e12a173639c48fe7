import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { spanText, timeText } from '../text.ts'
import type { VerdictNumbers } from '../types.ts'
import { Tiles } from './tiles.tsx'

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
      <Tiles
        label="Verdicts"
        tiles={[
          ['Median time to a verdict', medianSeconds === null ? '–' : spanText(medianSeconds * 1_000)],
          ['Approved', approved],
          ['Denied', denied],
          ['Expired without a verdict', expired, expired > 0],
          ['Withdrawn by agents', withdrawn],
        ]}
      />
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
