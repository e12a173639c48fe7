/** What a request to a model asks for, as far as it decides what the call can cost. */
import { isObject } from '../base/records.ts'
import { type CalledModel, type Format, maxModelLength } from './formats.ts'
import { topMembers } from './top-members.ts'
import type { Usage } from './usage.ts'

export interface ModelRequest {
  /** That of the path, or else of the body. */
  readonly model: string | undefined
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
interface Numbers {
  readonly output: readonly string[]
  readonly copies: readonly string[]
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

const others = ['model', 'stream', 'stream_options', 'background', 'metadata']

const wantedOf = new Map(
  Object.entries(numbersOf).map(([format, { output, copies }]) => {
    const names = [...others, ...output, ...copies].map(name => name.split('.', 1)[0]!)
    return [format, new Map(names.map(name => [name.toLowerCase(), name]))] as const
  }),
)
const noNames: ReadonlyMap<string, string> = new Map()

/** Undefined: the body is no JSON object that all servers read in the same way, or its answer could hide its usage. */
export function readModelRequest({ format, model }: CalledModel, body: Buffer): ModelRequest | undefined {
  const members = topMembers(body, wantedOf.get(format) ?? noNames)
  if (members === undefined) return undefined
  const output = highest(members, numbersOf[format].output)
  const copies = highest(members, numbersOf[format].copies)
  const named = members.get('model') ?? undefined
  if (output === 'odd' || copies === 'odd' || !isModel(named)) return undefined
  if (format === 'openai' && isLong(members.get('metadata'))) return undefined
  const streams = members.get('stream') === true
  const options = members.get('stream_options')
  return {
    model: model ?? named,
    maxOutput: output,
    copies: Math.max(1, copies ?? 1),
    streams,
    asksUsage: streams && isObject(options) && options['include_usage'] === true,
    isBackground: format === 'openai' && members.get('background') === true,
  }
}

/** Responses repeat it behind their usage, which must stay among the last bytes that are read. */
const longestMetadata = 2_048

const isLong = (metadata: unknown): boolean =>
  metadata !== undefined && Buffer.byteLength(JSON.stringify(metadata)) > longestMetadata

const isModel = (value: unknown): value is string | undefined =>
  value === undefined || (typeof value === 'string' && value !== '' && value.length <= maxModelLength)

/** The highest of the numbers; undefined: none is given, or one that means no limit. `odd`: one of them is no number. */
function highest(members: ReadonlyMap<string, unknown>, names: readonly string[]): number | 'odd' | undefined {
  let found: number | undefined
  for (const name of names) {
    const value = memberOf(members, name)
    if (value === undefined || value === null) continue
    if (typeof value !== 'number') return 'odd'
    // Ollama takes -1 for as much as it can.
    if (value >= 0) found = Math.max(found ?? 0, Math.ceil(value))
  }
  return found
}

function memberOf(members: ReadonlyMap<string, unknown>, name: string): unknown {
  const [outer = '', inner] = name.split('.')
  const value = members.get(outer)
  if (inner === undefined || !isObject(value)) return value ?? undefined
  return Object.hasOwn(value, inner) ? value[inner] : undefined
}

/** Bytes of a body that are one token at least, as far as tokenizers go. */
const bytesPerToken = 3
/** Tokens that an answer may have when the request does not say. */
const usualOutput = 16_384
/** No model writes more in one answer, and no provider gives more answers to a call: higher numbers change nothing. */
const longestOutput = 262_144
const maxCopies = 128

/** The tokens that the call can use, as far as its body shows. @param writes its answer is written by a model */
export function maxUsage(request: ModelRequest, bodyBytes: number, writes: boolean): Usage {
  const each = writes ? Math.min(longestOutput, request.maxOutput ?? usualOutput) : 0
  return {
    input: Math.ceil(bodyBytes / bytesPerToken),
    output: each * Math.min(maxCopies, request.copies),
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
