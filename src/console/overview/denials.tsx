import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import type { Overview } from '../types.ts'

/** The most frequent denials within the last hour. */
export function Denials({ denials: { rules, hosts, agents } }: Pick<Overview, 'denials'>) {
  return (
    <section class="stack" aria-labelledby="denials">
      <h2 id="denials">Denied by policies in the last hour</h2>
      {rules.length + hosts.length + agents.length === 0 ? (
        <p class="hint">None.</p>
      ) : (
        <div class="plots">
          <Ranking title="Rules" items={rules.map(({ name, count }) => ({ name, count, href: policyOf(name) }))} />
          <Ranking title="Hosts" items={hosts} />
          <Ranking
            title="Agents"
            items={agents.map(({ id, name, count }) => ({ name: name || id, count, href: hrefOf('agents', id) }))}
          />
        </div>
      )}
    </section>
  )
}

/** Rules are named `policy/rule`. */
function policyOf(name: string): string | undefined {
  const slash = name.indexOf('/')
  return mayRead.value && slash > 0 ? hrefOf('policies', name.slice(0, slash)) : undefined
}

interface Ranked {
  readonly name: string
  readonly count: number
  readonly href?: string | undefined
}

function Ranking({ title, items }: { readonly title: string; readonly items: readonly Ranked[] }) {
  return (
    <Table
      caption={title}
      hidesNames
      items={items}
      columns={[
        { name: 'Name', cell: ({ name, href }) => <Text value={name} limit={120} href={href} /> },
        { name: 'Denials', kind: 'number', cell: ({ count }) => count },
      ]}
    />
  )
}
