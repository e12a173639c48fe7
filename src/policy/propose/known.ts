import type { IsKnown } from '../evaluation/masked.ts'
import type { Condition } from '../language/model.ts'
import { type BodyValue, type BodyValues, combinationsOf } from './field-values.ts'
import type { KeptShape } from './kept.ts'

/** Of the head: each request of a shape has the same. */
const ofHead = ['input.method', 'input.origin', 'input.scheme', 'input.host', 'input.port']
/** The same for requests of a shape with the same ids in the path. */
const ofPath = ['input.path', 'input.rawPath', 'llm.provider']
/** Of the agent as it is registered. */
const ofAgent = /^agent\.(?:id|name|ownerId|owner|policyName|tags\b)/
/** Fields of messages: missing in bodies of other kinds. */
const ofMessage = ['mcp.method', 'mcp.tool', 'mcp.resource', 'mcp.prompt', 'llm.model', 'graphql.operation']
/** A query of certain parameters with any values: `rules.ts` makes it. */
const ofNamesAlone = /^\^(\(\?:[^()]*\)\(\?:=\[\^&;\]\*\)\?)\(\?:&\1\)\*\$$/

/** Which conditions a made-up request of the shape answers like all of its requests. */
export function knownBy(shape: KeptShape, fields: BodyValues = {}): IsKnown {
  const texts = textsOf(fields)
  const isBodiless = shape.facts.some(([field]) => field === 'input.bodyInfo.size')
  const namesOf = (field: string) => shape.names.find(([name]) => name === field)?.[1]
  const query = shape.unfit === null ? namesOf('input.queryString') : undefined
  return condition => {
    const { field } = condition
    if (ofHead.includes(field) || ofPath.includes(field) || field.startsWith('input.pathSegments')) return true
    if (ofAgent.test(field)) return true
    if (shape.unfit !== null) return false
    if (/^input\.quer|^input\.url$/.test(field)) return isKnownQuery(condition, query ?? [])
    if (isBodiless) return /^(?:input\.body|mcp\.|llm\.|graphql\.|input\.contentType$)/.test(field)
    return (texts.has(field) && condition.operator !== 'typeIs') || isKnownOfBody(field, shape, namesOf)
  }
}

/** Fields of which the examples have all texts. Whether one that says true or false was a text is not known. */
function textsOf(fields: BodyValues): ReadonlySet<string> {
  const combined = Object.keys(combinationsOf(fields)[0] ?? {})
  return new Set(combined.filter(field => !hasBoolean(fields[field])))
}

const hasBoolean = (value: BodyValue | undefined): boolean =>
  value === undefined || 'min' in value || value.texts.includes('true') || value.texts.includes('false')

function isKnownQuery({ field, operator, value }: Condition, names: readonly string[]): boolean {
  if (names.length === 0) return true
  if (field === 'input.queryString') return operator === 'matches' && ofNamesAlone.test(value)
  return field.startsWith('input.query.') && !hasName(names, field.slice('input.query.'.length))
}

function isKnownOfBody(
  field: string,
  { facts, names }: KeptShape,
  namesOf: (field: string) => readonly string[] | undefined,
): boolean {
  if (field === 'input.contentType' || field === 'input.bodyInfo.kind' || ofMessage.includes(field)) return true
  if (names.some(([name]) => name === field) || facts.some(([name]) => name === field)) return true
  const sized = field.replace(/@size$/, '@keys')
  if (sized !== field && namesOf(sized) !== undefined) return true
  const keys = namesOf('input.body.@keys')
  // A member that is not there is missing in all of them.
  return keys !== undefined && field.startsWith('input.body.') && !hasName(keys, field.slice('input.body.'.length))
}

/** Whether one of the names may be what a field begins with; letter case is not told apart. */
function hasName(names: readonly string[], field: string): boolean {
  const wanted = field.toLowerCase()
  if (/["'[\]]/.test(field.slice(0, 1)) || wanted.startsWith('@')) return true
  return names.some(name => wanted.startsWith(name.toLowerCase()))
}
