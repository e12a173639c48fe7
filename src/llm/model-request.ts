/** What a request to a model asks for, as far as it decides what the call can cost. */
import { entriesOf, fallbackMembers, fallbackModels } from '../base/fallback-models.ts'
import { isObject, mapValues } from '../base/records.ts'
import { type CalledModel, type Format, maxModelLength } from './formats.ts'
import { behindSpace, elementsIn } from './json-members.ts'
import { topMembers, type WantedName, type WantedNames } from './top-members.ts'
import type { Usage } from './usage.ts'

export interface ModelRequest {
  /** Each may answer. The first is that of the path, or else of the body; undefined: it names none. */
  readonly models: readonly (string | undefined)[]
  /** Tokens that one answer may have; undefined: the request does not say. */
  readonly maxOutput: number | undefined
  /** Answers that it asks for. */
  readonly copies: number
  /** It is answered in pieces. */
  readonly streams: boolean
  /** It is answered in pieces, and asks that the last one tells the usage (OpenAI). */
  readonly asksUsage: boolean
  /** It is answered before it is carried out, so that no answer tells the usage (OpenAI). */
  readonly isBackground: boolean
}

/** Where a format has its numbers. `a.b` is the member `b` of the object `a`. */
interface Numbers<N = string> {
  readonly output: readonly N[]
  readonly copies: readonly N[]
}

const maxTokens = ['max_tokens']

const numbersOf: Readonly<Record<Format, Numbers>> = {
  openai: { output: [...maxTokens, 'max_completion_tokens', 'max_output_tokens'], copies: ['n', 'best_of'] },
  anthropic: { output: maxTokens, copies: [] },
  gemini: {
    output: [
      ...['generationConfig.maxOutputTokens', 'generationConfig.max_output_tokens'],
      ...['generation_config.maxOutputTokens', 'generation_config.max_output_tokens'],
    ],
    copies: ['generationConfig', 'generation_config'].flatMap(name => [
      `${name}.candidateCount`,
      `${name}.candidate_count`,
    ]),
  },
  ollama: { output: ['options.num_predict'], copies: [] },
  bedrock: { output: ['inferenceConfig.maxTokens'], copies: [] },
  'bedrock-invoke': {
    output: [
      ...[...maxTokens, 'max_tokens_to_sample', 'max_gen_len', 'max_new_tokens', 'maxTokens', 'max_completion_tokens'],
      ...['textGenerationConfig.maxTokenCount', 'inferenceConfig.max_new_tokens', 'inferenceConfig.maxTokens'],
    ],
    copies: ['n', 'num_generations'],
  },
  cohere: { output: maxTokens, copies: [] },
}

const includeUsage = 'stream_options.include_usage'
/** Responses of OpenAI repeat them behind their usage, which must stay among the last bytes that are read. */
const repeated = ['metadata', 'user']
const others = ['model', ...fallbackMembers, 'stream', includeUsage, 'background', 'prompt']
/** Counted, not parsed: prompts are long. */
const texts: ReadonlySet<string> = new Set(['prompt'])

/** The name of a member, and that of the one in it that is meant. */
type MemberPath = readonly [outer: string, inner?: string]

const pathOf = (name: string): MemberPath => {
  const [outer = '', inner] = name.split('.')
  return inner === undefined ? [outer] : [outer, inner]
}

interface RequestNames extends Numbers<MemberPath> {
  readonly names: WantedNames
}

const requestNames = mapValues(
  numbersOf,
  ({ output, copies }, format): RequestNames => ({
    names: wantedNames([...others, ...(format === 'openai' ? repeated : []), ...output, ...copies]),
    output: output.map(pathOf),
    copies: copies.map(pathOf),
  }),
)
const usagePath = pathOf(includeUsage)

function wantedNames(all: readonly string[]): WantedNames {
  const byOuter = Object.groupBy(all, name => name.split('.', 1)[0]!)
  return new Map(
    Object.entries(byOuter).map(([outer, names = []]): [string, WantedName] => {
      const inner = names.filter(name => name !== outer).map(name => name.slice(outer.length + 1))
      const wanted = { name: outer, isText: texts.has(outer) }
      return [outer.toLowerCase(), inner.length === 0 ? wanted : { ...wanted, inner: wantedNames(inner) }]
    }),
  )
}

/** Undefined: the body is no JSON object that all servers read in the same way, or its answer could hide its usage. */
export function readModelRequest({ format, model }: CalledModel, body: Buffer): ModelRequest | undefined {
  const numbers = requestNames[format]
  const members = topMembers(body, numbers.names)
  if (members === undefined) return undefined
  const changed = withFallbacks(members)
  const output = highestIn(changed.map(each => highest(each, numbers.output, true)))
  const copies = highestIn(changed.map(each => highest(each, numbers.copies) ?? 1))
  const named = members.get('model') ?? undefined
  const fallbacks = fallbackModels(name => members.get(name))
  if (output === 'odd' || copies === 'odd' || !isModel(named) || !fallbacks?.every(isModel)) return undefined
  if (format === 'openai' && hidesUsage(members)) return undefined
  const streams = members.get('stream') === true
  return {
    models: modelsOf(model ?? named, fallbacks),
    maxOutput: output,
    copies: Math.min(maxCopies, Math.max(1, copies ?? 1)) * promptsIn(members.get('prompt')),
    streams,
    asksUsage: streams && memberOf(members, usagePath) === true,
    isBackground: format === 'openai' && members.get('background') === true,
  }
}

/** No provider gives more answers to a prompt: higher numbers change nothing. */
const maxCopies = 128

const openBracket = 91
/** Comes behind the digits and the minus. */
const colon = 58
const quote = 34

/** Completions answer each prompt of a list. A list of numbers is one prompt, in tokens. */
function promptsIn(prompt: unknown): number {
  if (!Buffer.isBuffer(prompt) || prompt[0] !== openBracket) return 1
  const first = prompt[behindSpace(prompt, 1)]!
  const isNumber = first < colon && first !== quote
  return isNumber ? 1 : elementsIn(prompt)
}

/** OpenRouter takes the first of `models` where there is no `model`. */
const modelsOf = (model: string | undefined, fallbacks: readonly string[]): ModelRequest['models'] =>
  model === undefined && fallbacks.length > 0 ? fallbacks : [model, ...fallbacks]

/** The longest text of them, in bytes of JSON. */
const maxRepeated = 2_048

/** Whether the answer could repeat so much behind its usage that this is not read, or another usage. */
function hidesUsage(members: RequestMembers): boolean {
  if (!repeated.some(name => members.has(name))) return false
  const text = JSON.stringify(repeated.map(name => members.get(name)))
  return Buffer.byteLength(text) > maxRepeated || text.includes('"usage":{')
}

const isModel = (value: unknown): value is string | undefined =>
  value === undefined || (typeof value === 'string' && value !== '' && value.length <= maxModelLength)

/**
 * The highest of the numbers; undefined: none is given. `odd`: one of them is no number.
 *
 * @param isLimit numbers below 1 mean no limit: Ollama takes -1 for as much as it can, others 0
 */
function highest(members: RequestMembers, paths: readonly MemberPath[], isLimit = false): number | 'odd' | undefined {
  let found: number | undefined
  let isUnlimited = false
  for (const path of paths) {
    const value = memberOf(members, path)
    if (value === undefined || value === null) continue
    if (typeof value !== 'number') return 'odd'
    isUnlimited ||= isLimit && value < 1
    found = Math.max(found ?? 0, Math.ceil(value))
  }
  return isUnlimited ? undefined : found
}

type RequestMembers = ReadonlyMap<string, unknown>

/** The members as they are, and as each of the fallbacks changes them: an entry may have some of its own (LiteLLM). */
function withFallbacks(members: RequestMembers): readonly RequestMembers[] {
  const entries = entriesOf(members.get('fallbacks')).filter(isObject)
  return entries.length === 0
    ? [members]
    : [members, ...entries.map(entry => new Map([...members, ...Object.entries(entry)]))]
}

/** Undefined: one of them has no limit. */
function highestIn(found: readonly (number | 'odd' | undefined)[]): number | 'odd' | undefined {
  let max = 0
  let isUnlimited = false
  for (const each of found) {
    if (each === 'odd') return 'odd'
    isUnlimited ||= each === undefined
    max = Math.max(max, each ?? 0)
  }
  return isUnlimited ? undefined : max
}

function memberOf(members: RequestMembers, path: MemberPath): unknown {
  const value = members.get(path[0])
  const inner = path[1]
  if (inner === undefined || value === undefined || value === null) return value
  return value instanceof Map ? value.get(inner) : 'no object'
}

/** Bytes of a body for one token, as texts of all kinds and languages have them at least. */
const usualBytes = 3
/** Tokens that a provider adds to a prompt, such as its instructions for tools. */
const addedTokens = 2_048
/** Tokens that an answer may have when the request does not say. */
const usualOutput = 16_384
/** No model writes more in one answer. */
const longestOutput = 262_144

export interface UsageBounds {
  /** The answer is written by a model. */
  readonly writes: boolean
  /** No text has more tokens; else texts of rare letters may. */
  readonly isStrict: boolean
}

/** The tokens that the call can use, as far as its body shows. */
export function maxUsage(request: ModelRequest, bodyBytes: number, { writes, isStrict }: UsageBounds): Usage {
  const maxEach = Math.min(longestOutput, request.maxOutput ?? (isStrict ? longestOutput : usualOutput))
  return {
    // No text has more tokens than bytes of UTF-8, and no body has fewer bytes than its texts.
    input: isStrict ? bodyBytes + addedTokens : Math.ceil(bodyBytes / usualBytes),
    output: writes ? maxEach * request.copies : 0,
    ...{ cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 },
  }
}

/** Bytes of a streamed answer for one token: of the framing, most of it. */
const streamedBytes: Readonly<Record<Format, number>> = {
  ...{ openai: 60, ollama: 60, cohere: 60 },
  ...{ anthropic: 20, bedrock: 20, 'bedrock-invoke': 20 },
  gemini: 8,
}

/** Tokens of the part of an answer that came, when nothing tells them. It errs high. */
export const outputOfBytes = (format: Format, bytes: number): number => Math.ceil(bytes / streamedBytes[format])
