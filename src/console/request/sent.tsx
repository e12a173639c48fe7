import type { Finding } from '../body/findings.ts'
import { placeOf } from '../body/url.ts'
import { Method } from '../parts/marks.tsx'
import { added, Pairs } from '../parts/pairs.tsx'
import { Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'
import type { HitlRequest } from '../types.ts'
import { Body } from './body.tsx'

interface SentProps {
  readonly view: HitlRequest
  /** Values of the body that are not those of the request that it is compared with. */
  readonly changes: readonly Finding[]
}

/** What an approval sends, exactly as it is sent. */
export function Sent({ view, changes }: SentProps) {
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
      <Body view={view} changes={changes} />
      <p class="hint digest">
        SHA-256 of all that is sent <code>{view.digest}</code>
      </p>
    </section>
  )
}
