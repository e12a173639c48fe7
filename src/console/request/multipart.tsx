import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { ReadBody, Shape } from '../body/kind.ts'
import { codingFields, readBytes } from '../body/kind.ts'
import type { Part } from '../body/multipart.ts'
import { Pairs } from '../parts/pairs.tsx'
import { useSome } from '../parts/some.tsx'
import { Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'

type Draw = (body: ReadBody, name: string) => ComponentChildren

interface PartsProps {
  readonly body: ReadBody
  readonly shape: Extract<Shape, { readonly kind: 'multipart' }>
  readonly draw: Draw
}

/** Each part with its name, type and size, as what it is. */
export function Parts({ body, shape: { parts, around }, draw }: PartsProps) {
  const [shown, more] = useSome(parts)
  const names = parts.flatMap(part => part.name ?? [])
  const doubled = names.filter((name, index) => names.indexOf(name) < index)
  return (
    <>
      {doubled.length > 0 && (
        <p class="notice warn">
          More than one part is named <Text value={doubled[0] ?? ''} limit={120} kind="bytes" />.
        </p>
      )}
      {around.length > 0 && (
        <p class="notice warn">
          {around.reduce((sum, { from, to }) => sum + to - from, 0).toLocaleString('en')} bytes are outside of the
          parts, where servers ignore them. They are in the views as text and bytes.
        </p>
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

interface PartProps {
  readonly body: ReadBody
  readonly part: Part
  readonly index: number
  readonly draw: Draw
}

function PartView({ body: { bytes, places }, part, index, draw }: PartProps) {
  const { name, files, type } = part
  const { from, to } = part.content
  const content = useMemo(() => {
    const inside = places
      .filter(place => place.from < to && place.to > from)
      .map(place => ({ ...place, from: Math.max(0, place.from - from), to: Math.min(to, place.to) - from }))
    // A part that has parts itself is shown as text: two levels look like one.
    const shown = /^multipart\//i.test(type) ? '' : type
    const codings = Object.fromEntries(codingFields.map(field => [field, headerOf(part, field.toLowerCase())]))
    return readBytes(bytes.slice(from, to), { ...codings, 'content-type': shown }, inside)
  }, [bytes, part])
  return (
    <>
      <p class="part-head">
        <Text value={name ?? `Part ${index + 1}`} limit={120} kind="bytes" as="strong" />
        {files.map(file => (
          <span key={file}>
            file <Text value={file} limit={120} kind="bytes" />
          </span>
        ))}
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
