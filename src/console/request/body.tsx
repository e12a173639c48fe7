import { useMemo, useState } from 'preact/hooks'
import { type Finding, withChanges } from '../body/findings.ts'
import { type ReadBody, readBody, type Shape } from '../body/kind.ts'
import type { HitlRequest } from '../types.ts'
import { BodyBytes, BodyText } from './long.tsx'
import { BodyShape } from './shapes.tsx'

interface BodyProps {
  readonly view: HitlRequest
  /** Values that are not those of the request that it is compared with. */
  readonly changes: readonly Finding[]
}

/** The body as what it is, as text, or as its bytes. */
export function Body({ view, changes }: BodyProps) {
  const read = useMemo(() => readBody(view), [view.body, view.bodyEncoding])
  const body = useMemo(() => marked(read, changes), [read, changes])
  switch (body) {
    case 'none':
      return null
    case 'sealed':
      return (
        <p class="notice warn">
          The body is sealed under a key that the gateway does not have any more. It cannot be shown, and an approval is
          refused.
        </p>
      )
    case 'deleted':
      return <p class="notice">The header fields and the body were deleted when the agent withdrew the request.</p>
    default:
      // What is open depends on the marks.
      return <BodyViews key={changes.length} body={body} />
  }
}

function marked(body: ReturnType<typeof readBody>, changes: readonly Finding[]): ReturnType<typeof readBody> {
  if (typeof body === 'string' || changes.length === 0) return body
  return { ...body, findings: withChanges(body.findings, changes) }
}

const names: Readonly<Record<Shape['kind'], string>> = {
  tool: 'Tool',
  messages: 'Messages',
  json: 'JSON',
  form: 'Form',
  text: 'Text',
  bytes: 'Bytes',
}

/** What a body is, and the ways to look at it. */
export function BodyViews({ body }: { readonly body: ReadBody }) {
  const [as, setAs] = useState(body.shape.kind)
  const kinds = [...new Set<Shape['kind']>([body.shape.kind, 'text', 'bytes'])]
  return (
    <div class="body">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has a frame and a legend */}
      <div class="views" role="group" aria-label="Show the body as">
        {kinds.map(kind => (
          <button key={kind} type="button" aria-pressed={kind === as} onClick={() => setAs(kind)}>
            {names[kind]}
          </button>
        ))}
      </div>
      {body.notes.map(note => (
        <p key={note} class="notice warn">
          {note}
        </p>
      ))}
      {as === 'text' && <BodyText body={body} />}
      {as === 'bytes' && <BodyBytes body={body} />}
      {as !== 'text' && as !== 'bytes' && <BodyShape body={body} />}
    </div>
  )
}
