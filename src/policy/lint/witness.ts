import type { Condition, Node } from '../language/model.ts'
import { readWords } from '../language/operators/values.ts'
import { type DescribedRequest, requestFromDescription } from '../request/describe.ts'
import { isRecord, parsePath, type Step } from '../values/path.ts'

/** A request under construction. */
interface Draft {
  method: string
  scheme: string
  host: string
  port: string
  path: string
  readonly query: [string, string][]
  readonly headers: Record<string, string>
  readonly agent: Record<string, unknown>
  body: Record<string, unknown> | undefined
  destinationIp: string | undefined
}

/**
 * A request made from conditions so that all of them hold, except for patterns, the clock and the risk score, which cannot
 * be made up. The caller checks the conditions; undefined when not even a draft is possible.
 */
export function witnessOf(nodes: readonly Node[]): DescribedRequest | undefined {
  const draft: Draft = {
    ...{ method: 'GET', scheme: 'https', host: 'witness.example', port: '', path: '/' },
    ...{ query: [], headers: {}, agent: {}, body: undefined, destinationIp: '192.0.2.1' },
  }
  if (!nodes.every(node => draw(draft, node))) return undefined
  const query = new URLSearchParams(draft.query).toString()
  const url = `${draft.scheme}://${draft.host}${draft.port}${draft.path}${query === '' ? '' : `?${query}`}`
  const { method, headers, body, destinationIp } = draft
  const request = { method, url, headers, body, ...(destinationIp === undefined ? {} : { destinationIp }) }
  const made = requestFromDescription({ request, agent: draft.agent }, 0)
  return 'problem' in made ? undefined : made
}

/** Makes a node hold; false when that is not possible. Negations are left to luck: most values are not named. */
function draw(draft: Draft, node: Node): boolean {
  if ('all' in node) return node.all.every(inner => draw(draft, inner))
  if ('any' in node) return draw(draft, node.any[0]!)
  if ('not' in node || negated.test(node.operator)) return true
  const value = sampleOf(node)
  if (value === undefined) return node.operator === 'isEmpty' || node.value.toLowerCase() === 'false'
  return place(draft, node, value)
}

const negated = /^(?:ne|not.*)$/

/** A value for which the condition holds. */
function sampleOf({ field, operator, value, valueType }: Condition): unknown {
  switch (operator) {
    case 'eq':
      return valueType === undefined ? value : JSON.parse(value)
    case 'in':
    case 'hasAll':
    case 'between':
      return field === 'time.clock' ? undefined : firstWord(value)
    case 'gt':
      return Number(value) + 1
    case 'lt':
      return Number(value) - 1
    case 'gte':
    case 'lte':
      return Number(value)
    case 'startsWith':
    case 'endsWith':
    case 'contains':
      return value
    case 'pathMatches':
      return firstWord(value)?.replace(/\*\*|\*|\{[^}]*\}/g, 'x')
    case 'hostMatches':
      return firstWord(value)?.replace(/^\*\.|^\./, 'x.')
    case 'ipIn':
      return firstWord(value)?.split('/')[0]
    case 'exists':
      return value.toLowerCase() === 'true' ? 'x' : undefined
    default:
      return undefined
  }
}

function firstWord(value: string): string | undefined {
  return readWords(value)[0]
}

/** Puts a value where the field looks for it. */
function place(draft: Draft, { field }: Condition, value: unknown): boolean {
  const steps = parsePath(field)
  if (typeof steps === 'string') return false
  const [area, name = ''] = field.split(/[.[]/)
  const rest = steps.slice(2)
  if (area === 'agent') return placeAgent(draft, name, value)
  if (area !== 'input') return false
  if (name === 'body') return placeBody(draft, rest, value)
  const key = rest[0]?.kind === 'key' ? rest[0].key : ''
  return rest.length <= 1 && placeHead(draft, { name, key }, String(value))
}

interface HeadPlace {
  readonly name: string
  /** Of a header field or query parameter. */
  readonly key: string
}

function placeHead(draft: Draft, { name, key }: HeadPlace, value: string): boolean {
  if (name === 'headers') draft.headers[key] = value
  else if (name === 'query') draft.query.push([key, value])
  else if (name === 'contentType') draft.headers['content-type'] = value
  else if (name === 'destinationIp') draft.destinationIp = value
  else if (name === 'port') draft.port = `:${value}`
  else if (name === 'path') draft.path = value.startsWith('/') ? value : `/${value}`
  else if (name === 'origin') [draft.scheme = '', draft.host = ''] = value.toLowerCase().split('://')
  else if (name === 'host') draft.host = value.startsWith('.') ? `x${value}` : value
  else if (name === 'method' || name === 'scheme') draft[name] = name === 'method' ? value.toUpperCase() : value
  else return false
  return true
}

const agentNumbers = /^(?:trustScore|ageHours|requestsLastMinute|deniedLast10m|hitlLast24h|bytesToday)$/

function placeAgent(draft: Draft, name: string, value: unknown): boolean {
  if (name === 'tags' || name === 'claims') return false
  draft.agent[name] = agentNumbers.test(name) ? Number(value) : name === 'hostSeen' ? value === 'true' : value
  return true
}

function placeBody(draft: Draft, steps: readonly Step[], value: unknown): boolean {
  if (steps.length === 0 || steps[0]?.kind !== 'key') return false
  draft.body ??= {}
  return insert(draft.body, steps, value)
}

/** Sets the value that the steps lead to, and makes the objects and lists on the way. `[*]` is the first element. */
function insert(target: Record<string | number, unknown>, steps: readonly Step[], value: unknown): boolean {
  const [step, next] = steps
  if (step?.kind !== 'key' && step?.kind !== 'each') return false
  const key = step.kind === 'key' ? step.key : 0
  if (next === undefined) {
    target[key] = value
    return true
  }
  const known = Object.hasOwn(target, key) ? target[key] : undefined
  const fits = next.kind === 'each' ? Array.isArray(known) : isRecord(known)
  target[key] = fits ? known : next.kind === 'each' ? [] : Object.create(null)
  // An object or a list, by the line above; a list takes its index as the key.
  return insert(target[key] as Record<string | number, unknown>, steps.slice(1), value)
}
