import { isRecord, type PathStep, parsePath } from '../values/path.ts'

export interface RequestDraft {
  /** Empty: GET, or POST when there is a body. */
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

/** Puts a value where the field looks for it; false when that is not known. */
export function place(draft: RequestDraft, field: string, value: unknown): boolean {
  const steps = parsePath(field)
  if (typeof steps === 'string') return false
  const [area, name = ''] = field.split(/[.[]/)
  const rest = steps.slice(2)
  if (area === 'agent') return placeAgent(draft, name, value)
  const path = area === 'input' && name === 'body' ? rest : bodyPath(field, rest)
  if (path !== undefined) return placeBody(draft, field, path, value)
  if (area !== 'input') return false
  if (name === 'url') return placeUrl(draft, String(value))
  const key = rest[0]?.kind === 'key' ? rest[0].key : ''
  return rest.length <= 1 && placeHead(draft, { name, key }, String(value))
}

function placeUrl(draft: RequestDraft, url: string): boolean {
  const [, scheme, authority, path = '/', query = ''] =
    /^(https?):\/\/([^/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(url) ?? []
  if (scheme === undefined || authority === undefined) return false
  Object.assign(draft, { scheme, host: authority, port: '', path })
  draft.query.push(...new URLSearchParams(query))
  return true
}

interface HeadField {
  readonly name: string
  /** Of a header field or query parameter. */
  readonly key: string
}

function placeHead(draft: RequestDraft, { name, key }: HeadField, value: string): boolean {
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

const agentNumbers =
  /^(?:trustScore|ageHours|requestsLastMinute|deniedLast10m|hitlLast24h|bytesToday|spendToday|spendThisMonth|tokensToday)$/

function placeAgent(draft: RequestDraft, name: string, value: unknown): boolean {
  if (name === 'tags' || name === 'claims') return false
  draft.agent[name] = agentNumbers.test(name) ? Number(value) : name === 'hostSeen' ? value === 'true' : value
  return true
}

/** Fields that stand for a place in a body, and the method of JSON-RPC that has it there. */
const places: Readonly<Record<string, readonly [path: readonly string[], rpc?: string]>> = {
  'mcp.method': [['method'], ''],
  'mcp.tool': [['params', 'name'], 'tools/call'],
  'mcp.arguments': [['params', 'arguments'], 'tools/call'],
  'mcp.resource': [['params', 'uri'], 'resources/read'],
  'mcp.prompt': [['params', 'name'], 'prompts/get'],
  'llm.model': [['model']],
  'llm.maxTokens': [['max_tokens']],
  'llm.stream': [['stream']],
}

const baseOf = (field: string) => field.split(/[.[]/, 2).join('.')

/** Where a field that is another name for a place in the body has its value. */
function bodyPath(field: string, rest: readonly PathStep[]): readonly PathStep[] | undefined {
  const found = places[baseOf(field)]
  return found && [...found[0].map((key): PathStep => ({ kind: 'key', key })), ...rest]
}

function placeBody(draft: RequestDraft, field: string, steps: readonly PathStep[], value: unknown): boolean {
  if (steps.length === 0 || steps[0]?.kind !== 'key') return false
  draft.body ??= {}
  const rpc = places[baseOf(field)]?.[1]
  if (rpc !== undefined) Object.assign(draft.body, { jsonrpc: '2.0', id: 1 }, rpc === '' ? {} : { method: rpc })
  return insert(draft.body, steps, value)
}

type Container = Record<string | number, unknown>

/** Sets the value that the steps lead to, and makes the objects and lists on the way. `[*]` is the first element. */
function insert(target: Container, steps: readonly PathStep[], value: unknown): boolean {
  const [step, next] = steps
  const key = keyOf(step)
  if (key === undefined) return false
  if (next === undefined) {
    target[key] = value
    return true
  }
  const known = Object.hasOwn(target, key) ? target[key] : undefined
  const isList = typeof keyOf(next) === 'number'
  const fits = isList ? Array.isArray(known) : isRecord(known)
  target[key] = fits ? known : isList ? [] : Object.create(null)
  // An object or a list, by the line above; a list takes its index as the key.
  return insert(target[key] as Container, steps.slice(1), value)
}

/** Gives the object of a field `.@keys` a member of that name, unless it has members. */
export function placeName(draft: RequestDraft, field: string, name: string): boolean {
  const object = field.slice(0, -'.@keys'.length)
  const isThere = object === 'input.body' ? draft.body !== undefined : isPlaced(draft, object)
  return isThere || place(draft, `${object}[${JSON.stringify(name)}]`, 'x')
}

/** Whether the body has a value where the field looks for it. */
export function isPlaced(draft: RequestDraft, field: string): boolean {
  return holderOf(draft.body, field) !== undefined
}

/** The body without the value of a field; undefined when the field has none in it. */
export function leaveOut(body: RequestDraft['body'], field: string): RequestDraft['body'] {
  const copy = structuredClone(body)
  const found = holderOf(copy, field)
  if (found === undefined) return undefined
  if (Array.isArray(found.holder)) found.holder.length = 0
  else Reflect.deleteProperty(found.holder, found.key)
  return copy
}

/** The object or list in the body that has the value of a field. */
function holderOf(body: RequestDraft['body'], field: string): { holder: object; key: string | number } | undefined {
  const steps = parsePath(field)
  if (typeof steps === 'string') return undefined
  const path = bodyPath(field, steps.slice(2)) ?? steps.slice(2)
  const key = keyOf(path.at(-1))
  const holder = path.slice(0, -1).reduce<unknown>((value, step) => ownValue(value, keyOf(step)), body)
  if (key === undefined || typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key))
    return undefined
  return { holder, key }
}

function ownValue(value: unknown, key: string | number | undefined): unknown {
  if (key === undefined || typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, key)?.value
}

/** The key of an object, or 0 for the first element of a list. */
function keyOf(step: PathStep | undefined): string | number | undefined {
  if (step?.kind === 'key') return step.key
  return step?.kind === 'each' || (step?.kind === 'index' && step.index === 0) ? 0 : undefined
}
