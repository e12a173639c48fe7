import { placeOf } from '../body/url.ts'
import { Method } from '../parts/marks.tsx'
import { useSome } from '../parts/some.tsx'
import { Cut, Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'
import type { HitlRequest } from '../types.ts'
import { Body } from './body.tsx'

/** Instead of the value of a field that the gateway adds. */
const added = Symbol('added')

/** What an approval sends, exactly as it is sent. */
export function Sent({ view }: { readonly view: HitlRequest }) {
  const { origin, path, query } = placeOf(view.url)
  const { addedFields = [] } = view
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
          {addedFields.length > 0 && <span class="hint"> and {addedFields.join(', ')}, which the gateway adds</span>}
        </summary>
        <Pairs
          caption="Header fields"
          pairs={[...Object.entries(view.headers), ...addedFields.map(name => [name, added] as const)]}
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

/** Undefined: a name without an equals sign. */
type FieldValue = string | typeof added | undefined

interface PairsProps {
  readonly caption: string
  readonly pairs: readonly (readonly [name: string, value: FieldValue])[]
}

function Pairs({ caption, pairs }: PairsProps) {
  const [shown, more] = useSome(pairs)
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
        {shown.map(([name, value]) => (
          <tr>
            <th scope="row">
              {name === '' ? <em>no name</em> : <Cut pieces={[{ text: name }]} kind="told" first={300} />}
            </th>
            <td>
              <Value value={value} />
            </td>
          </tr>
        ))}
        {more && (
          <tr>
            <td colSpan={2}>{more}</td>
          </tr>
        )}
      </tbody>
    </table>
  )
}

function Value({ value }: { readonly value: FieldValue }) {
  if (value === undefined) return <em>no value</em>
  if (value === added) return <span class="redacted">added by the gateway</span>
  if (value === '[REDACTED]') return <span class="redacted">redacted here, sent as it came</span>
  return <Cut pieces={redactedIn(value)} kind="told" first={8_192} />
}

/** What the gateway keeps from people is marked within a value, too. */
function redactedIn(value: string) {
  return value
    .split(/(\[REDACTED\])/)
    .map(text => (text === '[REDACTED]' ? { text, detector: 'redacted here' } : { text }))
}
