import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { ReadBody, Shape } from '../body/kind.ts'
import { readBytes } from '../body/kind.ts'
import { type Part, parameterOf } from '../body/multipart.ts'
import { Pairs } from '../parts/pairs.tsx'
import { useSome } from '../parts/some.tsx'
import { Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'

/** Draws the content of a part. */
type Draw = (body: ReadBody, name: string) => ComponentChildren

interface PartsProps {
  readonly body: ReadBody
  readonly shape: Extract<Shape, { readonly kind: 'multipart' }>
  readonly draw: Draw
}

/** Each part with its name, type and size, as what it is. */
export function Parts({ body, shape: { parts, around }, draw }: PartsProps) {
  const [shown, more] = useSome(parts)
  const names = parts.flatMap(part => nameOf(part) ?? [])
  const doubled = names.filter((name, index) => names.indexOf(name) < index)
  return (
    <>
      {doubled.length > 0 && (
        <p class="notice warn">
          More than one part is named <Text value={doubled[0] ?? ''} limit={120} kind="bytes" />.
        </p>
      )}
      {around.length > 0 && (
        <p class="notice warn">There is text outside of the parts, which servers ignore. It is in the view as text.</p>
      )}
      <ol class="body-parts">
        {shown.map((part, index) => (
          <li key={part.content.from}>
            <PartView body={body} part={part} index={index} draw={draw} />
          </li>
        ))}
        {more && <li>{more}</li>}
      </ol>
    </>
  )
}

const headerOf = ({ headers }: Part, wanted: string): string =>
  headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? ''

const nameOf = (part: Part): string | undefined => parameterOf(headerOf(part, 'content-disposition'), 'name')

interface PartProps {
  readonly body: ReadBody
  readonly part: Part
  readonly index: number
  readonly draw: Draw
}

function PartView({ body: { bytes, places }, part, index, draw }: PartProps) {
  const { from, to } = part.content
  const file = parameterOf(headerOf(part, 'content-disposition'), 'filename')
  const type = headerOf(part, 'content-type')
  const content = useMemo(() => {
    const inside = places
      .filter(place => place.from < to && place.to > from)
      .map(place => ({ ...place, from: Math.max(0, place.from - from), to: Math.min(to, place.to) - from }))
    // A part that has parts itself is shown as text: two levels look like one.
    const shown = /^multipart\//i.test(type) ? '' : type
    return readBytes(bytes.slice(from, to), { 'content-type': shown }, inside)
  }, [bytes, part])
  return (
    <>
      <p class="part-head">
        <strong>
          <Text value={nameOf(part) ?? `Part ${index + 1}`} limit={120} kind="bytes" />
        </strong>
        {file !== undefined && (
          <span>
            file <Text value={file} limit={120} kind="bytes" />
          </span>
        )}
        <span class="hint">
          <Text value={type || 'no type'} limit={80} kind="bytes" />, {sizeText(to - from)}
        </span>
      </p>
      <details>
        <summary>{part.headers.length} header fields</summary>
        <Pairs caption="Header fields of the part" pairs={part.headers} kind="exact" />
      </details>
      {content.bytes.length > 0 && draw(content, `part-${index + 1}`)}
    </>
  )
}
