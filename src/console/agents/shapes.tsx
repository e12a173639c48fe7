import { query } from '../api.ts'
import { Pages, pageNumber } from '../parts/filters.tsx'
import { Shown, When } from '../parts/frame.tsx'
import { makeHref } from '../parts/make-link.ts'
import { Method } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { EffectMark } from '../policies/effect.tsx'
import { timeText } from '../text.ts'
import type { Agent, RecordedShape, ShapePage } from '../types.ts'
import { Propose } from './propose.tsx'
import { Recording } from './recording.tsx'

/** What was recorded of the agent's requests, and a policy that is made of it. */
export function WhatItDoes({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const { id } = agent
  const path = `/agents/${encodeURIComponent(id)}/shapes`
  const reading = useRead<ShapePage>(path + query({ page: pageNumber(), pageSize: 50 }))
  return (
    <section class="stack" aria-labelledby="shapes">
      <h2 id="shapes">What it does</h2>
      <Shown reading={reading}>
        {page => (
          <>
            <p class="hint">
              {page.totalCount === 0
                ? 'No request was recorded yet.'
                : `Kinds of requests, by all gateways, the most frequent first. Ids are classes; of fields of bodies only a few short texts are kept.`}
            </p>
            {page.incompleteSince !== null && (
              <p class="notice warn">
                Not complete: requests were not recorded since {timeText(page.incompleteSince)}.
              </p>
            )}
            {page.items.length > 0 && <Shapes agentId={id} items={page.items} />}
            <Pages list={page} of="kind" />
            <Recording agent={agent} onChanged={onChanged} />
            {page.totalCount > 0 && <Propose agent={agent} />}
          </>
        )}
      </Shown>
    </section>
  )
}

function Shapes({ agentId, items }: { readonly agentId: string; readonly items: readonly RecordedShape[] }) {
  return (
    <Table
      label="Requests that were recorded"
      items={items}
      columns={[
        { name: 'Request', kind: 'row', cell: one => <ShapeName shape={one} /> },
        { name: 'Decision', cell: one => <Decided shape={one} /> },
        { name: 'Answer', kind: 'wide', cell: one => (one.status === 0 ? 'none' : `${one.status}xx`) },
        { name: 'Times', kind: 'number', cell: one => one.count },
        { name: 'Days', kind: 'wide', cell: one => one.days },
        { name: 'Last', kind: 'wide', cell: one => <When at={one.lastAt} /> },
        {
          name: 'Rule, test or grant',
          cell: ({ id, unfit }) =>
            unfit === null ? (
              <a href={makeHref({ agent: agentId, shape: id })}>Make from this</a>
            ) : (
              <span class="hint">
                no rule: <Text value={unfit} limit={120} />
              </span>
            ),
        },
      ]}
    />
  )
}

function ShapeName({ shape: { method, origin, path, names, facts } }: { readonly shape: RecordedShape }) {
  const tool = facts['mcp.tool'] ?? facts['llm.model']
  const query = names['input.queryString'] ?? []
  const url = `${origin}${path}${query.length === 0 ? '' : `?${query.join('&')}`}`
  return (
    <>
      <Method name={method} /> <Text value={url} limit={300} />
      {typeof tool === 'string' && (
        <>
          {' '}
          <Text value={tool} limit={80} />
        </>
      )}
    </>
  )
}

function Decided({ shape: { effect, rule, verdict } }: { readonly shape: RecordedShape }) {
  return (
    <>
      <EffectMark effect={effect} /> {rule === null ? 'by the default' : <Text value={rule} limit={80} />}
      {verdict !== null && `, ${verdict}`}
    </>
  )
}
