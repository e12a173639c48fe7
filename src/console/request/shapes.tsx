import { type Range, segmentsOf } from '../body/findings.ts'
import { formCoding, type Pair } from '../body/form.ts'
import { type Json, type JsonObject, type JsonString, jsonCoding, stringOf } from '../body/json.ts'
import { memberOf, type ReadBody, type Shape, without } from '../body/kind.ts'
import { longestName, longestValue, PairTable } from '../parts/pairs.tsx'
import { useSome } from '../parts/some.tsx'
import { Cut } from '../parts/text.tsx'
import { JsonTree } from './json.tsx'
import { BodyBytes, BodyText, Long } from './long.tsx'
import { PictureView } from './picture.tsx'

/** The body as what it is; parts are in multipart.tsx. Whatever a view does not set out by itself follows below it. */
export function BodyShape({ body }: { readonly body: ReadBody }) {
  const { shape } = body
  switch (shape.kind) {
    case 'tool':
      return <Tool body={body} shape={shape} />
    case 'messages':
      return <Messages body={body} shape={shape} />
    case 'json':
      return <JsonTree value={shape.value} source={body} />
    case 'graphql':
      return <GraphQl body={body} shape={shape} />
    case 'form':
      return <Form body={body} pairs={shape.pairs} />
    case 'picture':
      return <PictureView bytes={body.bytes} picture={shape.picture} />
    case 'unread':
      return <p role="status">Reading the body…</p>
    case 'text':
      return <BodyText body={body} />
    case 'bytes':
      return <BodyBytes body={body} />
    case 'multipart':
      return null
  }
}

interface ShapeProps<K> {
  readonly body: ReadBody
  readonly shape: Extract<Shape, { readonly kind: K }>
}

function Tool({ body, shape }: ShapeProps<'tool'>) {
  return (
    <>
      <p class="tool">
        MCP tool{' '}
        <strong>
          <Words value={shape.tool} body={body} />
        </strong>
        {shape.arguments === undefined && ' without arguments'}
      </p>
      {shape.arguments !== undefined && <JsonTree value={shape.arguments} source={body} />}
      <Rest title="Beside tool and arguments" rest={shape.rest} body={body} />
    </>
  )
}

function GraphQl({ body, shape: { query, operationName, variables, rest } }: ShapeProps<'graphql'>) {
  return (
    <>
      {operationName !== undefined && (
        <p class="tool">
          Operation{' '}
          <strong>
            {operationName.kind === 'string' ? (
              <Words value={operationName} body={body} />
            ) : (
              <JsonTree value={operationName} source={body} />
            )}
          </strong>
        </p>
      )}
      <StringText value={query} body={body} />
      {variables !== undefined && (
        <>
          <p class="hint">Variables</p>
          <JsonTree value={variables} source={body} />
        </>
      )}
      <Rest title="Beside the operation" rest={rest} body={body} />
    </>
  )
}

function Rest({ title, rest, body }: { readonly title: string; readonly rest: JsonObject; readonly body: ReadBody }) {
  if (rest.members.length === 0) return null
  return (
    <>
      <p class="hint">{title}</p>
      <JsonTree value={rest} source={body} />
    </>
  )
}

function Messages({ body, shape }: ShapeProps<'messages'>) {
  const model = memberOf(shape.rest, 'model')
  const [messages, more] = useSome(shape.messages)
  return (
    <>
      {model?.kind === 'string' && (
        <p class="tool">
          Model{' '}
          <strong>
            <Words value={model} body={body} />
          </strong>
        </p>
      )}
      <ol class="messages">
        {messages.map(message => (
          <li key={message.from}>
            <Message message={message} body={body} />
          </li>
        ))}
        {more && <li>{more}</li>}
      </ol>
      <Rest title="Beside the messages" rest={shape.rest} body={body} />
    </>
  )
}

function Message({ message, body }: { readonly message: JsonObject; readonly body: ReadBody }) {
  const role = memberOf(message, 'role')
  const content = memberOf(message, 'content')
  const isNamed = role?.kind === 'string'
  return (
    <>
      <strong>{isNamed ? <Words value={role} body={body} /> : 'No role'}</strong>
      {content !== undefined && <Content content={content} body={body} />}
      <Rest title="Beside the content" rest={without(message, 'content', ...(isNamed ? ['role'] : []))} body={body} />
    </>
  )
}

/** A text, or parts of which some are texts. */
function Content({ content, body }: { readonly content: Json; readonly body: ReadBody }) {
  if (content.kind === 'string') return <StringText value={content} body={body} />
  if (content.kind !== 'list' || content.items.length === 0) return <JsonTree value={content} source={body} />
  return <ContentParts parts={content.items} body={body} />
}

function ContentParts({ parts, body }: { readonly parts: readonly Json[]; readonly body: ReadBody }) {
  const [shown, more] = useSome(parts)
  return (
    <>
      {shown.map(part => {
        const text = plainText(part, body.text)
        return text === undefined ? <JsonTree value={part} source={body} /> : <StringText value={text} body={body} />
      })}
      {more}
    </>
  )
}

/** The text of a part that has nothing else. */
function plainText(part: Json, text: string): Json | undefined {
  if (part.kind !== 'object' || part.members.length !== 2) return undefined
  const [type, value] = [memberOf(part, 'type'), memberOf(part, 'text')]
  const isText = type?.kind === 'string' && stringOf(text, type) === 'text'
  return isText && value?.kind === 'string' ? value : undefined
}

/** A string in a line. */
function Words({ value, body }: { readonly value: JsonString; readonly body: ReadBody }) {
  const range = { from: value.from + 1, to: value.to - 1 }
  return <Cut pieces={segmentsOf(body, range, jsonCoding)} kind="value" first={longestName} />
}

function StringText({ value, body }: { readonly value: Json; readonly body: ReadBody }) {
  const range = { from: value.from + 1, to: value.to - 1 }
  return <Long pieces={segmentsOf(body, range, jsonCoding)} kind="exact" />
}

function Form({ body, pairs }: { readonly body: ReadBody; readonly pairs: readonly Pair[] }) {
  const cut = (range: Range, first: number) => (
    <Cut pieces={segmentsOf(body, range, formCoding)} kind="bytes" first={first} />
  )
  return (
    <PairTable
      label="Form"
      items={pairs}
      name={({ name }) => name.from !== name.to && cut(name, longestName)}
      value={({ value }) => value !== undefined && cut(value, longestValue)}
    />
  )
}
