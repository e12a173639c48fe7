import { secretSearch } from '../detectors/detectors.ts'
import { type Field, parseField } from '../language/fields/fields.ts'
import { Zone } from '../language/fields/zone.ts'
import { fold } from '../language/operators/values.ts'
import { factsOf } from '../lint/examined.ts'
import type { DescribedRequest } from '../request/describe.ts'
import type { Facts } from '../request/facts.ts'
import { foldName } from '../request/names.ts'
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
  /** Fields with the names that they had: of parameters of the query, of the members of an object, of root fields. */
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

export const shapeOf = (request: DescribedRequest): FoundShape => shapeOfFacts(factsOf(request))

/** The same of what was read of it. @param maxNames longest names of one object, characters of all */
export function shapeOfFacts(facts: Facts, maxNames = Number.POSITIVE_INFINITY): FoundShape {
  const found = readShape(facts, maxNames)
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

function readShape(facts: Facts, maxNames: number): FoundShape {
  const head = headOf(facts)
  if ('unfit' in head) return head
  const kind = facts.body?.kind ?? 'none'
  if (kind === 'none') return { ...head, facts: [...head.facts, ['input.bodyInfo.size', '0']] }
  // Each fact compares all names with its own: of thousands that takes milliseconds.
  const names = facts.body?.names
  if (isTexts(names) && lengthOf(names) > maxNames) return moreThanRecorded
  const found = readFact('input.contentType', facts)
  const type = found === missing ? null : found
  if (type !== null && typeof type !== 'string') return { unfit: 'a body with several content types' }
  const plain: Shape['facts'] = [...head.facts, ['input.bodyInfo.kind', kind], ['input.contentType', type]]
  if (namelessKinds.includes(kind)) return { ...head, facts: plain }
  if (kind !== 'json' && kind !== 'form') return { unfit: `a body that is ${kind}` }
  return withNames({ ...head, facts: plain }, facts, maxNames)
}

/** The shape of a request of which only the head is known, without the query. @param hasBody whether it had a body */
export function shapeOfHead(request: DescribedRequest, hasBody: boolean): FoundShape {
  if (hasBody) return { unfit: 'a body that was not recorded' }
  const shape = shapeOf({ ...request, head: { ...request.head, contentLength: 0 } })
  return 'unfit' in shape ? shape : { ...shape, names: [] }
}

/** A path that servers read in different ways, such as `/@types%2fnode` of npm: rules name it as it was sent. */
export const rawPath = 'input.rawPath'
export const hasRawPath = ({ facts }: Pick<Shape, 'facts'>): boolean => facts.some(([field]) => field === rawPath)

function headOf(facts: Facts): Shape | { readonly unfit: string } {
  const { method, origin } = facts.request
  if (facts.mcp?.malformed !== undefined) return { unfit: 'malformed header fields of MCP' }
  const query = parametersOf(facts.request.queryString)
  if (query === undefined) return { unfit: 'a query with unusual names' }
  const segments = facts.path.slice(1).split('/')
  const raw: Shape['facts'] = facts.readings === undefined ? [] : [[rawPath, facts.request.rawPath]]
  return { method, origin, segments, names: [['input.queryString', query]], facts: raw }
}

const plainName = /^[\w.$~[\]%-]{1,64}$/
/** All names of a query: they stand twice in a pattern, which has at most 1,024 characters. */
const maxNames = 480

/** The names of the parameters as they are written. */
function parametersOf(query: string): readonly string[] | undefined {
  if (query === '') return []
  const names = query.split('&').map(pair => pair.replace(/=.*$/s, ''))
  if (!names.every(name => plainName.test(name)) || query.includes(';')) return undefined
  const different = [...new Set(names)].sort()
  return different.join('|').replace(/[.$[\]]/g, '..').length <= maxNames ? different : undefined
}

function withNames(head: Shape, facts: Facts, maxNames: number): FoundShape {
  const found = [...head.facts]
  const names = [...head.names]
  for (const field of factFields) {
    const value = readFact(field, facts)
    if (value === missing || (value === unreadable && field === 'graphql.operation' && !isGraphql(head))) continue
    if (typeof value !== 'string') return { unfit: `${field} is not one text` }
    found.push([field, value])
  }
  const objects = found.some(([field]) => field === 'mcp.method') ? objectsOfMessage : ['input.body']
  for (const object of objects) {
    const value = readFact(`${object}.@keys`, facts)
    if (value === missing && object !== 'input.body') found.push([object, null])
    else if (isTexts(value) && lengthOf(value) > maxNames) return moreThanRecorded
    else if (isTexts(value) && !value.every(isRegular)) return { unfit: 'names with unusual letters' }
    else if (isTexts(value)) names.push([`${object}.@keys`, value.toSorted()])
    else return { unfit: object === 'input.body' ? 'a body that is no object' : `${object} is no object` }
  }
  if (found.some(([field]) => field === 'graphql.operation')) {
    const value = readFact('graphql.fields', facts)
    const fields = value instanceof Several ? value.leaves : [value].flat()
    if (!isTexts(fields)) return { unfit: 'graphql.fields are not texts' }
    if (lengthOf(fields) > maxNames) return moreThanRecorded
    names.push(['graphql.fields', fields.toSorted()])
  }
  return { ...head, facts: found, names }
}

export const moreThanRecorded = { unfit: 'more than is recorded' }

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length, 0)

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(each => typeof each === 'string')

/** Whether a condition on names answers for it: letter case is not told apart, and of µ or ſ in more ways than one. */
const isRegular = (name: string): boolean => fold(foldName(name)) === fold(name)

const isGraphql = ({ segments }: Shape) => segments.some(segment => /graphql|^gql$/i.test(segment))

/** The value of a field that is known to be one. */
export function readFact(text: string, facts: Facts): unknown {
  // A text that is no field would be a fault of the caller.
  return (parseField(text) as Field).read(facts, utc)
}
