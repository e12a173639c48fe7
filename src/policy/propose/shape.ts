import { secretSearch } from '../detectors/detectors.ts'
import { type Field, parseField } from '../language/fields/fields.ts'
import { Zone } from '../language/fields/zone.ts'
import { factsOf } from '../lint/examined.ts'
import type { DescribedRequest } from '../request/describe.ts'
import type { Facts } from '../request/facts.ts'
import { findIn } from '../turns/evaluation.ts'
import { Several } from '../values/path.ts'
import { missing, unreadable } from '../values/truth.ts'

/** What of a request its rules are made of. Values of header fields, of the query and of the body are not among it. */
export interface Shape {
  readonly method: string
  readonly origin: string
  /** Segments of the path as it was sent: `['v1', 'items']`. */
  readonly segments: readonly string[]
  /** Fields with the one value that they had, such as tool or model; null: the field was missing. */
  readonly facts: readonly (readonly [field: string, value: string | null])[]
  /** Fields with the names that they had: of the members of an object, of root fields. */
  readonly names: readonly (readonly [field: string, names: readonly string[]])[]
}

/** A shape, or why no rule can be made of the request. */
export type FoundShape = Shape | { readonly unfit: string }

/** Longest text that a rule names, UTF-16 units. */
const maxText = 256

/** Objects of a message of MCP whose members have names; of other bodies there is one. */
const objectsOfMessage = ['input.body', 'input.body.params', 'input.body.params.arguments']

const utc = new Zone('UTC')
const factFields = ['mcp.method', 'mcp.tool', 'mcp.resource', 'mcp.prompt', 'llm.model', 'graphql.operation']
/** Kinds of bodies that have no names. */
const namelessKinds = ['text', 'binary']

/** The shape of a whole request. */
export function shapeOf(request: DescribedRequest): FoundShape {
  const found = readShape(request)
  if ('unfit' in found) return found
  const texts = textsOf(found)
  if (texts.some(text => text.length > maxText)) return { unfit: 'a value that is too long' }
  // Findings may lie across segments.
  const secret = findIn(secretSearch, found.segments.join('/')) ?? findIn(secretSearch, texts.join('\n'))
  return secret === undefined ? found : { unfit: `a secret (${secret})` }
}

function textsOf({ segments, facts, names }: Shape): readonly string[] {
  return [...segments, ...facts.map(([, value]) => value ?? ''), ...names.flatMap(([, all]) => all)]
}

function readShape(request: DescribedRequest): FoundShape {
  const facts = factsOf(request)
  const head = headOf(facts)
  if ('unfit' in head) return head
  const kind = facts.body?.kind ?? 'none'
  if (kind === 'none') return { ...head, facts: [['input.bodyInfo.size', '0']], names: [] }
  const type = read('input.contentType', facts)
  if (typeof type !== 'string') return { unfit: 'a body without one content type' }
  const plain: Shape['facts'] = [
    ['input.bodyInfo.kind', kind],
    ['input.contentType', type],
  ]
  if (namelessKinds.includes(kind)) return { ...head, facts: plain, names: [] }
  if (kind !== 'json' && kind !== 'form') return { unfit: `a body that is ${kind}` }
  return withNames(head, plain, facts)
}

/** The shape of a request of which only the head is known. @param hasBody whether it had a body */
export function shapeOfHead(request: DescribedRequest, hasBody: boolean): FoundShape {
  if (hasBody) return { unfit: 'a body that was not recorded' }
  return shapeOf({ ...request, head: { ...request.head, contentLength: 0 } })
}

type Head = Pick<Shape, 'method' | 'origin' | 'segments'>

function headOf(facts: Facts): Head | { readonly unfit: string } {
  const { method, origin } = facts.request
  if (facts.readings !== undefined) return { unfit: 'a path that servers read in different ways' }
  if (facts.mcp?.malformed !== undefined) return { unfit: 'malformed header fields of MCP' }
  return { method, origin, segments: facts.path.slice(1).split('/') }
}

function withNames(head: Head, plain: Shape['facts'], facts: Facts): FoundShape {
  const found = [...plain]
  const names: [string, readonly string[]][] = []
  for (const field of factFields) {
    const value = read(field, facts)
    if (value === missing || (value === unreadable && field === 'graphql.operation' && !isGraphql(head))) continue
    if (typeof value !== 'string') return { unfit: `${field} is not one text` }
    found.push([field, value])
  }
  const objects = found.some(([field]) => field === 'mcp.method') ? objectsOfMessage : ['input.body']
  for (const object of objects) {
    const value = read(`${object}.@keys`, facts)
    if (value === missing && object !== 'input.body') found.push([object, null])
    else if (isTexts(value)) names.push([`${object}.@keys`, value.toSorted()])
    else return { unfit: object === 'input.body' ? 'a body that is no object' : `${object} is no object` }
  }
  if (found.some(([field]) => field === 'graphql.operation')) {
    const value = read('graphql.fields', facts)
    const fields = value instanceof Several ? value.leaves : [value].flat()
    if (!isTexts(fields)) return { unfit: 'graphql.fields are not texts' }
    names.push(['graphql.fields', fields.toSorted()])
  }
  return { ...head, facts: found, names }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(each => typeof each === 'string')

const isGraphql = ({ segments }: Head) => segments.some(segment => /graphql|^gql$/i.test(segment))

function read(text: string, facts: Facts): unknown {
  // The names above are fields.
  return (parseField(text) as Field).read(facts, utc)
}
