/**
 * Fields of calls to model providers. The path determines the format of a request; bodies at other paths are read as far as
 * they look like one. A value that the provider needs and that is not found is unreadable, never missing.
 */
import { entriesOf, fallbackModels } from '../../../base/fallback-models.ts'
import { percentDecoded } from '../../../base/percent.ts'
import type { Facts } from '../../request/facts.ts'
import { foldName, memberOf } from '../../request/names.ts'
import { isRecord, Several } from '../../values/path.ts'
import { missing, unreadable } from '../../values/truth.ts'

/** A format, by the end of the path. The first group is the model, where the path has it. */
interface ModelFormat {
  readonly provider: 'openai' | 'anthropic' | 'gemini' | 'ollama'
  readonly path: RegExp
  /** Whether the path names the model and the body does not. */
  readonly modelInPath?: true
  /** Whether answers stream unless the body says otherwise. */
  readonly streams?: true
}

const formats: readonly ModelFormat[] = [
  {
    provider: 'gemini',
    path: /\/models\/([^/:]+):(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)\/?$/i,
    modelInPath: true,
  },
  { provider: 'openai', path: /\/deployments\/([^/]+)\/(?:chat\/completions|completions|embeddings)\/?$/i },
  { provider: 'openai', path: /\/(?:chat\/completions|v\d\w*\/(?:completions|embeddings|responses))\/?$/i },
  { provider: 'anthropic', path: /\/v\d\w*\/messages(?:\/count_tokens)?\/?$/i },
  { provider: 'ollama', path: /\/api\/(?:chat|generate)\/?$/i, streams: true },
  { provider: 'ollama', path: /\/api\/embed(?:dings)?\/?$/i },
]

interface MatchedFormat {
  readonly format: ModelFormat
  readonly model: string | undefined
}

function formatOf(path: string): MatchedFormat | undefined {
  for (const format of formats) {
    const match = format.path.exec(path)
    if (match !== null) return { format, model: match[1] }
  }
  return undefined
}

export interface ModelNames {
  readonly provider: ModelFormat['provider']
  /** Undefined when servers could read it differently. */
  readonly model: string | undefined
}

/** Undefined when no rule read the body as JSON, and at paths of other calls. */
export function modelNames(facts: Facts): ModelNames | undefined {
  const provider = isRecord(facts.body?.read) ? providerOfPath(facts.path) : undefined
  if (provider === undefined) return undefined
  const model = llmModel(facts)
  return { provider, model: typeof model === 'string' ? model : undefined }
}

const isSame = (one: MatchedFormat | undefined, other: MatchedFormat | undefined): boolean =>
  one?.format === other?.format && one?.model === other?.model

export const llmProviders: readonly string[] = [...new Set(formats.map(({ provider }) => provider))]

export const providerOfPath = (path: string): ModelFormat['provider'] | undefined => formatOf(path)?.format.provider

/** By the path alone. */
export const llmProvider = ({ path }: Facts): unknown => providerOfPath(path) ?? missing

type Body = Readonly<Record<string, unknown>>

/** Reads the body of a call, where it is a JSON object. */
function ofBody(facts: Facts, read: (body: Body, found: MatchedFormat | undefined) => unknown): unknown {
  const found = formatOf(facts.path)
  const { readings } = facts.request
  if (readings?.some(path => !isSame(formatOf(path), found)) === true) return unreadable
  const value = facts.body?.value
  if (isRecord(value) && facts.body?.kind === 'json') return read(value, found)
  if (value === unreadable) return unreadable
  // Forms and lists are calls only at the path of a call.
  return found === undefined || value === missing ? missing : unreadable
}

/** The members by these names that are present. */
const present = (value: unknown, keys: readonly string[]): unknown[] =>
  keys.map(key => memberOf(value, key)).filter(found => found !== missing)

/** One value, or a list of all that are present: the gateway does not know which one the upstream uses. */
function allOf(values: readonly unknown[]): unknown {
  const found = values.filter(value => value !== missing)
  if (found.includes(unreadable)) return unreadable
  return found.length > 1 ? found : found.length === 1 ? found[0] : missing
}

export function llmModel(facts: Facts): unknown {
  return ofBody(facts, (body, found) => {
    const named = memberOf(body, 'model')
    const ofPath = found?.model === undefined ? missing : (percentDecoded(found.model) ?? unreadable)
    if (found?.format.modelInPath === true) return ofPath
    const model = allOf([ofPath, named, ...(found === undefined ? [] : fallbacksIn(body))])
    return model === missing && found !== undefined ? unreadable : model
  })
}

/** A provider may answer with any of them. */
function fallbacksIn(body: Body): readonly unknown[] {
  return (
    fallbackModels(name => {
      const value = memberOf(body, name)
      return value === missing ? undefined : value
    }) ?? [unreadable]
  )
}

export function llmStream(facts: Facts): unknown {
  return ofBody(facts, (body, found) => {
    if (found?.format.provider === 'gemini') return /:stream/i.test(facts.path)
    const stream = memberOf(body, 'stream')
    return stream === missing && found?.format.streams === true ? true : stream
  })
}

const maxTokenKeys = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']

/** Every limit that is set: the gateway does not know which one the upstream applies. */
export function llmMaxTokens(facts: Facts): unknown {
  return ofBody(facts, body => {
    const ofGemini = present(body, ['generationConfig', 'generation_config']).flatMap(config =>
      present(config, ['maxOutputTokens', 'max_output_tokens']),
    )
    const ofFallbacks = entriesOf(memberOf(body, 'fallbacks')).flatMap(entry => present(entry, maxTokenKeys))
    return allOf([
      ...present(body, maxTokenKeys),
      ...ofFallbacks,
      ...ofGemini,
      memberOf(memberOf(body, 'options'), 'num_predict'),
    ])
  })
}

/** Names of the tools offered to the model. */
export function llmTools(facts: Facts): unknown {
  return ofBody(facts, (body, found) => {
    const lists = present(body, ['tools', 'functions'])
    if (lists.length === 0) return missing
    if (!lists.every(Array.isArray)) return unreadable
    const isGemini = found?.format.provider === 'gemini'
    return new Several(lists.flat().flatMap(tool => toolNames(tool, isGemini)))
  })
}

/** Every name that a provider may take: a tool can have it in two places, and Gemini has several tools in one object. */
function toolNames(tool: unknown, isGemini: boolean): readonly unknown[] {
  const nested = [tool, ...present(tool, ['function', 'custom'])].flatMap(part => present(part, ['name']))
  const types = present(tool, ['type']).filter(type => nested.length === 0 || !typesOfNamed.has(type))
  const declared = present(tool, declarations).flatMap(list =>
    Array.isArray(list) ? list.map(each => memberOf(each, 'name')) : [unreadable],
  )
  const named = [...nested, ...types]
  // Gemini has its own tools as members: { googleSearch: {} }.
  const mayBeGemini = isGemini || declared.length > 0 || named.length === 0
  const builtIn = mayBeGemini && isRecord(tool) ? Object.keys(tool).filter(key => !declarations.includes(key)) : []
  const all = [...named, ...declared, ...builtIn.flatMap(bothSpellings)]
  return all.length > 0 ? all : [missing]
}

const declarations = ['functionDeclarations', 'function_declarations']
/** The types of tools that have a name of their own. */
const typesOfNamed: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** Gemini's own tools, for readers that ignore letter case: these take `GoogleSearch` for one of them. */
const ofGemini: ReadonlyMap<string, string> = new Map(
  [
    ...['google_search', 'google_search_retrieval', 'google_maps', 'enterprise_web_search', 'url_context'],
    ...['code_execution', 'computer_use', 'file_search', 'retrieval', 'mcp_servers'],
  ].map(name => [withoutBorders(name), name]),
)

function withoutBorders(name: string): string {
  return foldName(name).replaceAll('_', '')
}

/** Google reads a member by the name in its schema, `google_search`, and by the one in JSON, `googleSearch`. */
function bothSpellings(name: string): string[] {
  const schemaName = ofGemini.get(withoutBorders(name)) ?? name
  const snake = schemaName.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  const camel = schemaName.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return [...new Set([name, snake, camel])]
}

const messageKeys = ['messages', 'input', 'contents', 'prompt']

/** Messages of the conversation; a text alone is one. */
export function llmMessages(facts: Facts): unknown {
  return ofBody(facts, body => {
    const found = present(body, messageKeys)
    if (found.length === 0) return missing
    if (!found.every(value => typeof value === 'string' || Array.isArray(value))) return unreadable
    return found.reduce<number>((sum, value) => sum + (Array.isArray(value) ? value.length : 1), 0)
  })
}

export function llmRoles(facts: Facts): unknown {
  return ofBody(facts, body => {
    const found = present(body, messageKeys)
    if (found.includes(unreadable)) return unreadable
    const lists = found.filter(Array.isArray)
    if (lists.length === 0) return missing
    return new Several([...new Set(lists.flat().map(message => memberOf(message, 'role')))])
  })
}

const ofSystem = ['systemInstruction', 'system_instruction']
const promptKeys = ['messages', 'system', 'prompt', 'input', 'instructions', 'contents', 'suffix', ...ofSystem]

/** UTF-8 bytes of all text that the model is given. */
export function llmPromptBytes(facts: Facts): unknown {
  return ofBody(facts, body => {
    const prompts = present(body, promptKeys)
    if (prompts.length === 0) return missing
    if (prompts.includes(unreadable)) return unreadable
    return prompts.reduce<number>((sum, prompt) => sum + textBytes(prompt), 0)
  })
}

function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, part: unknown) => sum + textBytes(part), 0)
}
