import { useState } from 'preact/hooks'
import { call, type Failure } from '../api.ts'
import { Copy } from '../parts/copy.tsx'
import { Shown, When } from '../parts/frame.tsx'
import { Method } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Failed } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { EffectMark } from '../policies/effect.tsx'
import { plural, timeText } from '../text.ts'
import type { ProposedPolicy, RecordedShape, ShapePage } from '../types.ts'

/** What was recorded of the agent's requests, and a policy that is made of it. */
export function WhatItDoes({ id }: { readonly id: string }) {
  const reading = useRead<ShapePage>(`/agents/${encodeURIComponent(id)}/shapes?pageSize=100`)
  return (
    <section class="stack" aria-labelledby="shapes">
      <h2 id="shapes">What it does</h2>
      <Shown reading={reading}>
        {page => (
          <>
            <p class="hint">
              {page.totalCount === 0
                ? 'No request was recorded yet.'
                : `The most frequent of ${plural(page.totalCount, 'kind')} of requests, by all gateways. Ids are classes; values are not kept.`}
            </p>
            {page.incompleteSince !== null && (
              <p class="notice warn">
                Not complete: requests were not recorded since {timeText(page.incompleteSince)}.
              </p>
            )}
            {page.items.length > 0 && <Shapes items={page.items} />}
            {page.items.length > 0 && <Propose id={id} />}
          </>
        )}
      </Shown>
    </section>
  )
}

function Shapes({ items }: { readonly items: readonly RecordedShape[] }) {
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

/** A policy that is proposed: text to read and to copy. Nothing is put in force here. */
function Propose({ id }: { readonly id: string }) {
  const [found, setFound] = useState<ProposedPolicy>()
  const [failure, setFailure] = useState<Failure>()
  const [isAsking, setIsAsking] = useState(false)
  const ask = async (mode: 'learn' | 'narrow') => {
    setIsAsking(true)
    const answer = await call<ProposedPolicy>('POST', '/policies/propose', { body: { agentIds: [id], mode } })
    setIsAsking(false)
    setFailure(answer.ok ? undefined : answer.failure)
    setFound(answer.ok ? answer.data : undefined)
  }
  return (
    <div class="stack">
      <p class="actions">
        <button type="button" disabled={isAsking} onClick={() => void ask('narrow')}>
          Propose a narrower policy
        </button>
        <button type="button" disabled={isAsking} onClick={() => void ask('learn')}>
          Propose a new policy
        </button>
      </p>
      {failure !== undefined && <Failed failure={failure} />}
      {found !== undefined && <Proposal found={found} />}
    </div>
  )
}

function Proposal({ found: { yaml, used, allowed, held, leftOut, tests } }: { readonly found: ProposedPolicy }) {
  return (
    <section class="stack" aria-label="Proposed policy">
      <p>
        Made of {plural(used, 'request')}: it allows {allowed} of them and holds {held}. Read it, and try it in shadow
        first.
      </p>
      {leftOut.length > 0 && (
        <p class="hint">Left out: {leftOut.map(({ cause, count }) => `${count} × ${cause}`).join('; ')}.</p>
      )}
      <pre>
        <Text value={yaml} />
      </pre>
      <p class="actions">
        <Copy text={yaml} name="Copy the policy" />
        <Copy text={tests} name="Copy its tests" />
      </p>
    </section>
  )
}
