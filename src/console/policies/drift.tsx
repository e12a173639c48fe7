import { useState } from 'preact/hooks'
import { Shown, When } from '../parts/frame.tsx'
import { makeHref } from '../parts/make-link.ts'
import { Method } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { plural, timeText } from '../text.ts'
import type { DriftedShape, PolicyDrift } from '../types.ts'

/** How the policy and what its agents do have come apart; looked for when somebody asks. */
export function Drift({ name }: { readonly name: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <section class="stack" aria-labelledby="drift">
      <h2 id="drift">Drift</h2>
      {isOpen ? (
        <Found name={name} />
      ) : (
        <p class="actions">
          <button type="button" onClick={() => setIsOpen(true)}>
            Compare with what its agents do
          </button>
        </p>
      )}
    </section>
  )
}

function Found({ name }: { readonly name: string }) {
  const reading = useRead<PolicyDrift>(`/policies/${encodeURIComponent(name)}/drift`)
  return <Shown reading={reading}>{drift => <Lists drift={drift} />}</Shown>
}

function Lists({ drift }: { readonly drift: PolicyDrift }) {
  const { agentsRead, agentsLeftOut, incompleteSince, unused, alwaysApproved, ofOneAgent, uncovered, stopped } = drift
  return (
    <>
      <p class="hint">
        Of the recorded requests of {plural(agentsRead, 'agent')}
        {agentsLeftOut > 0 && `; ${agentsLeftOut} more were left out`}.
        {incompleteSince !== null && ` Not complete since ${timeText(incompleteSince)}.`}
      </p>
      <Named title="Rules that decided nothing" rules={unused} />
      <Named title="Rules whose requests people always approve" rules={alwaysApproved} />
      <Named title="Rules that one agent uses" rules={ofOneAgent} />
      <Listed title="Covered by no rule" shapes={uncovered} />
      <Listed title="Came no more for two weeks" shapes={stopped} />
    </>
  )
}

function Named({ title, rules }: { readonly title: string; readonly rules: readonly string[] }) {
  if (rules.length === 0) return null
  return (
    <p>
      {title}:{' '}
      {rules.map((rule, place) => (
        <>
          {place > 0 && ', '}
          <Text value={rule} limit={200} />
        </>
      ))}
    </p>
  )
}

function Listed({ title, shapes }: { readonly title: string; readonly shapes: readonly DriftedShape[] }) {
  if (shapes.length === 0) return null
  return (
    <Table
      caption={title}
      items={shapes}
      columns={[
        {
          name: 'Request',
          kind: 'row',
          cell: ({ method, url, agentId, shapeId }) => (
            <a href={makeHref({ agent: agentId, shape: shapeId })}>
              <Method name={method} /> <Text value={url} limit={300} />
            </a>
          ),
        },
        { name: 'Times', kind: 'number', cell: ({ count }) => count },
        { name: 'Last', kind: 'wide', cell: ({ lastAt }) => <When at={lastAt} /> },
      ]}
    />
  )
}
