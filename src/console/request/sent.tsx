import { Method } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'
import type { HitlRequest } from '../types.ts'
import { Body } from './body.tsx'
import { placeOf } from './url.ts'

/** Stands for the value of a field that the gateway adds: no value of an agent has this character. */
const addedMark = '\u0000'

/** What an approval sends, exactly as it is sent. */
export function Sent({ view }: { readonly view: HitlRequest }) {
  const { origin, path, query } = placeOf(view.url)
  const { addedFields: added = [] } = view
  return (
    <section aria-labelledby="sent">
      <h2 id="sent" class="target" tabIndex={-1}>
        <span class="hidden">What will be sent:</span>
        <Method name={view.method} /> <Text value={origin} />
        <span class="path">
          <Text value={path} />
        </span>
      </h2>
      {query.length > 0 && <Pairs caption="Query" pairs={query} />}
      <details class="fields">
        <summary>
          {Object.keys(view.headers).length} header fields
          {added.length > 0 && <span class="hint"> and {added.join(', ')}, which the gateway adds</span>}
        </summary>
        <Pairs
          caption="Header fields"
          pairs={[...Object.entries(view.headers), ...added.map(name => [name, addedMark] as const)]}
        />
      </details>
      <h3>
        Body <span class="hint">{view.bodyBytes === 0 ? 'none' : sizeText(view.bodyBytes)}</span>
      </h3>
      <Body view={view} />
      <p class="hint digest">
        SHA-256 of all that is sent <code>{view.digest}</code>
      </p>
    </section>
  )
}

interface PairsProps {
  readonly caption: string
  readonly pairs: readonly (readonly [name: string, value: string])[]
}

function Pairs({ caption, pairs }: PairsProps) {
  return (
    <table class="grid">
      <caption>{caption}</caption>
      <thead class="hidden">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {pairs.map(([name, value]) => (
          <tr>
            <th scope="row">
              <Text value={name} limit={300} />
            </th>
            <td>
              <Value value={value} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Value({ value }: { readonly value: string }) {
  if (value === addedMark) return <span class="redacted">added by the gateway</span>
  if (value === '[REDACTED]') return <span class="redacted">redacted here, sent as it came</span>
  return <Text value={value} limit={8_192} />
}
