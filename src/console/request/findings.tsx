import { plural } from '../text.ts'
import type { HitlRequest } from '../types.ts'

/** What detectors found in the body, counted; each is marked where it stands. */
export function Findings({ view: { findings, findingPlaces = [], bodyBytes } }: { readonly view: HitlRequest }) {
  if (bodyBytes === 0) return null
  if (findings === undefined) return <p class="hint">Detectors did not search the body.</p>
  const counts = Object.entries(findings)
  if (counts.length === 0) return null
  const all = counts.reduce((sum, [, count]) => sum + count, 0)
  return (
    <p class="notice warn found">
      <span>
        <strong>{plural(all, 'finding')} in the body</strong>, which is sent as it is
      </span>
      {counts.map(([detector, count]) => (
        <span key={detector} class="mark warn">
          {detector} {count}
        </span>
      ))}
      {all > findingPlaces.length && <span>The first {findingPlaces.length} are marked.</span>}
      <button type="button" onClick={showFirst}>
        Show the first
      </button>
    </p>
  )
}

function showFirst(): void {
  const first = document.querySelector('.body .finding') ?? document.querySelector('.body')
  first?.scrollIntoView({ block: 'center' })
}
