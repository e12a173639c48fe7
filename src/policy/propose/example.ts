import { type DescribedRequest, type RequestDescription, requestFromDescription } from '../request/describe.ts'
import type { BodyValue, BodyValues } from './field-values.ts'
import type { KeptShape } from './kept.ts'
import { type Shape, shapeOf } from './shape.ts'

export type ExampleRequest = RequestDescription['request']
export type DescribedAgent = NonNullable<RequestDescription['agent']>

/** BodyMembers of messages and calls that are named by a fact of the shape. */
const memberOfFact: Readonly<Record<string, readonly string[]>> = {
  'mcp.method': ['method'],
  'mcp.tool': ['params', 'name'],
  'mcp.prompt': ['params', 'name'],
  'mcp.resource': ['params', 'uri'],
  'llm.model': ['model'],
}

interface BodyMembers {
  [name: string]: unknown
}

/** A request of a shape. Its values are made up, but for the first ones of fields that are known. */
export function exampleOf(shape: Shape, fields: BodyValues = {}): ExampleRequest {
  const { method, origin, segments, names } = shape
  const namesOf = (field: string) => names.find(([name]) => name === field)?.[1]
  const query = (namesOf('input.queryString') ?? []).map(name => `${name}=1`).join('&')
  const url = `${origin}/${segments.join('/')}${query === '' ? '' : `?${query}`}`
  const facts = new Map(shape.facts)
  const type = facts.get('input.contentType') ?? undefined
  const headers = type === undefined ? {} : { headers: { 'content-type': type } }
  const body = bodyOf(shape, facts.get('input.bodyInfo.kind') ?? undefined, fields)
  return { method, url, ...headers, ...(body === undefined ? {} : { body }) }
}

/** What is known of the values in requests of a shape. */
export interface KnownValues {
  /** For each place of the path with a class. */
  readonly values: readonly (readonly string[])[]
  readonly fields: BodyValues
}

/** A request of a kept shape, with the first ids that are known; undefined when none can be made. */
export function exampleOfKept(
  { path, unfit, ...rest }: KeptShape,
  { values, fields }: KnownValues,
): ExampleRequest | undefined {
  if (unfit !== null || values.some(known => known.length === 0)) return undefined
  const shape = { ...rest, segments: segmentsAt(path, values, 0) }
  return requestOf(shape, {}, fields) && exampleOf(shape, fields)
}

/** The segments of a path with one of the ids that are known of each place. */
export function segmentsAt(
  path: KeptShape['path'],
  values: readonly (readonly string[])[],
  at: number,
): readonly string[] {
  const known = values.values()
  return path.map(place => {
    if (typeof place === 'string') return place
    const ids = known.next().value ?? []
    return ids[at % ids.length] ?? ''
  })
}

/** The example as a request; undefined when it would have another shape. */
export function requestOf(shape: Shape, agent: DescribedAgent, fields: BodyValues = {}): DescribedRequest | undefined {
  const found = requestFromDescription({ request: exampleOf(shape, fields), agent }, 0)
  if ('problem' in found) return undefined
  return JSON.stringify(shapeOf(found)) === JSON.stringify(ordered(shape)) ? found : undefined
}

/** As `shapeOf` orders it. */
const ordered = ({ method, origin, segments, names, facts }: Shape) => ({ method, origin, segments, names, facts })

/** Text, since a body that is an object would get a content type. */
function bodyOf(shape: Shape, kind: string | undefined, fields: BodyValues): string | undefined {
  if (kind === undefined) return undefined
  if (kind === 'text') return 'text'
  if (kind === 'binary') return '\u0000'
  const keys = shape.names.find(([field]) => field === 'input.body.@keys')?.[1] ?? []
  if (kind === 'form') {
    const textOf = (name: string) => firstOf(fields[`input.body.${name}`]) ?? '1'
    return keys.map(name => `${encodeURIComponent(name)}=${encodeURIComponent(textOf(name))}`).join('&')
  }
  const body: BodyMembers = membersOf(keys)
  for (const [field, names] of shape.names) {
    const path = field.split('.').slice(2, -1)
    if (field.startsWith('input.body.') && path.length > 0) put(body, path, membersOf(names))
  }
  for (const [field, value] of Object.entries(fields)) put(body, field.split('.').slice(2), firstOf(value))
  for (const [field, value] of shape.facts) {
    const path = memberOfFact[field]
    if (path !== undefined && value !== null) put(body, path, value)
  }
  if (shape.facts.some(([field]) => field === 'mcp.method')) Object.assign(body, { jsonrpc: '2.0' })
  const operation = shape.facts.find(([field]) => field === 'graphql.operation')?.[1]
  const roots = shape.names.find(([field]) => field === 'graphql.fields')?.[1] ?? []
  if (typeof operation === 'string') put(body, ['query'], `${operation} { ${roots.join(' ')} }`)
  return JSON.stringify(body)
}

const firstOf = (value: BodyValue | undefined): string | number | undefined =>
  value === undefined || 'min' in value ? value?.min : value.texts[0]

const membersOf = (names: readonly string[]): BodyMembers => Object.fromEntries(names.map(name => [name, 1]))

/** Only in a place that is there. */
function put(body: BodyMembers, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  const inner = body[name]
  if (rest.length === 0 && Object.hasOwn(body, name)) body[name] = value
  // BodyMembers that are objects were made above.
  else if (typeof inner === 'object' && inner !== null) put(inner as BodyMembers, rest, value)
}
