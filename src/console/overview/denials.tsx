import type { ComponentChildren } from 'preact'
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
          <Ranking title="Rules">
            {rules.map(({ name, count }) => (
              <Ranked key={name} name={name} count={count} href={policyOf(name)} />
            ))}
          </Ranking>
          <Ranking title="Hosts">
            {hosts.map(({ name, count }) => (
              <Ranked key={name} name={name} count={count} />
            ))}
          </Ranking>
          <Ranking title="Agents">
            {agents.map(({ id, name, count }) => (
              <Ranked key={id} name={name || id} count={count} href={hrefOf('agents', id)} />
            ))}
          </Ranking>
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

function Ranking({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <table class="grid card-table">
      <caption>{title}</caption>
      <tbody>{children}</tbody>
    </table>
  )
}

interface RankedProps {
  readonly name: string
  readonly count: number
  readonly href?: string | undefined
}

function Ranked({ name, count, href }: RankedProps) {
  const text = <Text value={name} limit={120} />
  return (
    <tr>
      <td>{href === undefined ? text : <a href={href}>{text}</a>}</td>
      <td class="number">{count}</td>
    </tr>
  )
}
