import { placeOf } from '../body/url.ts'
import { Method } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import type { HitlSummary } from '../types.ts'

type Told = Pick<HitlSummary, 'title' | 'operation' | 'method' | 'url' | 'findings'>

/** What a request would do: in the words of its rule, or the tool, operation or model that its body asks for. */
export const whatOf = ({ title, operation }: Told): string | null => title ?? operation ?? null

/** The same in a line, of method and path where nothing else is known. */
export function What({ view }: { readonly view: Told }) {
  const what = whatOf(view)
  const { host, path } = placeOf(view.url)
  return (
    <span class="row-what">
      {what === null ? (
        <>
          <Method name={view.method} /> <Text value={host} limit={80} />
          <span class="row-path">
            <Text value={path} limit={120} />
          </span>
        </>
      ) : (
        <Text value={what} limit={160} />
      )}
    </span>
  )
}

/** How much detectors found in its body. */
export const findingsOf = ({ findings = {} }: Told): number =>
  Object.values(findings).reduce((sum, count) => sum + count, 0)

/** The computed danger, from 0 to 1; undefined when it was not looked at. */
export function riskOf({ risk }: Pick<HitlSummary, 'risk'>): number | undefined {
  const { score } = risk ?? {}
  return typeof score === 'number' ? score : undefined
}
