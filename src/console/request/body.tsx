import { useMemo, useRef, useState } from 'preact/hooks'
import { type Finding, withMarkings } from '../body/findings.ts'
import {
  isLongBody,
  type MissingBody,
  type ReadBody,
  readBody,
  readLong,
  readShownBody,
  type Shape,
} from '../body/kind.ts'
import { findMatches } from '../body/matches.ts'
import { useAsync } from '../parts/async.ts'
import type { HitlRequest } from '../types.ts'
import { Download, Find } from './body-tools.tsx'
import { BodyBytes, BodyText } from './long.tsx'
import { Parts } from './multipart.tsx'
import { BodyShape } from './shapes.tsx'

interface BodyProps {
  readonly view: HitlRequest
  /** Values that are not those of the request that it is compared with. */
  readonly changes: readonly Finding[]
}

/** The body as what it is, as text, or as its bytes. */
export function Body({ view, changes }: BodyProps) {
  const read = useBody(view)
  switch (read) {
    case undefined:
      return <p role="status">Reading the body…</p>
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
      return <BodyViews body={read} changes={changes} name={`body-${view.id.slice(0, 8)}`} />
  }
}

/** Undefined until a long body is decoded. */
function useBody(view: HitlRequest): ReadBody | MissingBody | undefined {
  const of = [view.body, view.bodyEncoding]
  const isLong = isLongBody(view)
  const short = useMemo(() => (isLong ? undefined : readBody(view)), of)
  const { current: long } = useAsync(isLong ? () => readShownBody(view) : undefined, of)
  return short ?? long
}

const names: Readonly<Record<Shape['kind'], string>> = {
  tool: 'Tool',
  messages: 'Messages',
  graphql: 'GraphQL',
  json: 'JSON',
  unread: 'JSON',
  form: 'Form',
  multipart: 'Parts',
  picture: 'Picture',
  text: 'Text',
  bytes: 'Bytes',
}

interface ViewsProps {
  readonly body: ReadBody
  readonly changes?: readonly Finding[]
  /** Of the file that it is saved as. */
  readonly name: string
}

const none: readonly Finding[] = []

/** What a body is, and the ways to look at it. */
export function BodyViews({ body: given, changes = none, name }: ViewsProps) {
  const read = useLong(given)
  const [chosen, setChosen] = useState<Shape['kind']>()
  const [wanted, setWanted] = useState('')
  const place = useRef<HTMLDivElement>(null)
  const matches = useMatches(read.text, wanted)
  const body = useMemo(() => {
    if (changes.length + matches.length === 0) return read
    return { ...read, findings: withMarkings(withMarkings(read.findings, changes), matches) }
  }, [read, changes, matches])
  const as = chosen ?? body.shape.kind
  const kinds = [...new Set<Shape['kind']>([body.shape.kind, 'text', 'bytes'])]
  return (
    <div class="body" ref={place}>
      <div class="body-tools">
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has a frame and a legend */}
        <div class="views" role="group" aria-label="Show the body as">
          {kinds.map(kind => (
            <button key={kind} type="button" aria-pressed={kind === as} onClick={() => setChosen(kind)}>
              {names[kind]}
            </button>
          ))}
        </div>
        {as !== 'picture' && as !== 'bytes' && as !== 'multipart' && (
          <Find count={wanted === '' ? undefined : matches.length} onInput={setWanted} place={place} />
        )}
        <Download bytes={body.bytes} name={name} />
      </div>
      {body.notes.map(note => (
        <p key={note} class="notice warn">
          {note}
        </p>
      ))}
      {/* What is open at first depends on the marks. */}
      <Shown key={`${matches.length} ${matches[0]?.to} ${changes.length}`} body={body} as={as} />
    </div>
  )
}

function Shown({ body, as }: { readonly body: ReadBody; readonly as: Shape['kind'] }) {
  if (as === 'multipart' && body.shape.kind === 'multipart') {
    return <Parts body={body} shape={body.shape} draw={(content, name) => <BodyViews body={content} name={name} />} />
  }
  switch (as) {
    case 'text':
      return <BodyText body={body} />
    case 'bytes':
      return <BodyBytes body={body} />
    default:
      return <BodyShape body={body} />
  }
}

/** Where the text occurs; none until that is known. */
function useMatches(text: string, wanted: string): readonly Finding[] {
  const find = wanted === '' ? undefined : () => findMatches(text, wanted)
  return useAsync(find, [text, wanted]).current ?? none
}

/** The same body, with long JSON read. */
function useLong(body: ReadBody): ReadBody {
  const read = body.shape.kind === 'unread' ? () => readLong(body) : undefined
  return useAsync(read, [body]).current ?? body
}
