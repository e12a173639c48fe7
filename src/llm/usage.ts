/** What a call used, as the formats of providers tell it. */
import { isObject } from '../base/records.ts'
import type { Format } from './formats.ts'

/** Tokens of one call. No token is in two of them. */
export interface Usage {
  /** Read by the model, neither from a cache nor into one. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Written to a cache for an hour, which has a price of its own. */
  readonly cacheWriteLong: number
  /** Cost of the call as the provider states it, in US dollars. */
  readonly cost?: number
}

export const wholeOf = ({ input, output, cacheRead, cacheWrite, cacheWriteLong }: Usage): number =>
  input + output + cacheRead + cacheWrite + cacheWriteLong

/** One call cannot use more: such a number is no count. */
const maxTokens = 1e9

const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= maxTokens
const count = (value: unknown): number => (isCount(value) ? Math.ceil(value) : 0)
/** Higher costs are ignored. Some providers state 0 when they do not know the cost. */
const maxCost = 1e6
const isCost = (value: unknown): value is number => typeof value === 'number' && value > 0 && value < maxCost
const inner = (value: unknown, key: string): unknown =>
  isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined

/** Something else than a count stands where one belongs. */
const isOdd = (value: unknown): boolean => value !== undefined && value !== null && !isCount(value)

/** Undefined: what it says cannot be true, so nothing of it is believed. */
function usageOf(input: unknown, output: unknown, cached: Partial<Usage> = {}): Usage | undefined {
  if (isOdd(input) || isOdd(output)) return undefined
  const { cacheRead = 0, cacheWrite = 0, cacheWriteLong = 0 } = cached
  return { input: count(input), output: count(output), cacheRead, cacheWrite, cacheWriteLong }
}

/** Reads the usage object of a format; undefined when it has no counts. */
type ReadUsage = (json: unknown) => Usage | undefined

/** Cached tokens are in the input. `prompt_cache_hit_tokens` is DeepSeek's. */
const readOpenAi: ReadUsage = json => {
  const isResponse = isCount(inner(json, 'input_tokens'))
  const input = isResponse ? inner(json, 'input_tokens') : inner(json, 'prompt_tokens')
  const output = isResponse ? inner(json, 'output_tokens') : inner(json, 'completion_tokens')
  // Some servers of embeddings state only the sum.
  const whole = isCount(input) ? input : isCount(output) ? undefined : inner(json, 'total_tokens')
  if (!isCount(whole)) return undefined
  const details = inner(json, isResponse ? 'input_tokens_details' : 'prompt_tokens_details')
  const cacheRead = Math.max(count(inner(details, 'cached_tokens')), count(inner(json, 'prompt_cache_hit_tokens')))
  const cacheWrite = count(inner(details, 'cache_write_tokens'))
  const found = usageOf(Math.max(0, whole - cacheRead - cacheWrite), output, { cacheRead, cacheWrite })
  const cost = inner(json, 'cost')
  return found && isCost(cost) ? { ...found, cost } : found
}

/** Cached tokens are beside the input. */
const readAnthropic: ReadUsage = json => {
  const output = inner(json, 'output_tokens')
  if (!isCount(output)) return undefined
  const cacheWriteLong = count(inner(inner(json, 'cache_creation'), 'ephemeral_1h_input_tokens'))
  return usageOf(inner(json, 'input_tokens'), output, {
    cacheRead: count(inner(json, 'cache_read_input_tokens')),
    cacheWrite: Math.max(0, count(inner(json, 'cache_creation_input_tokens')) - cacheWriteLong),
    cacheWriteLong,
  })
}

/** Cached tokens are in the input; thoughts are beside the candidates. */
const readGemini: ReadUsage = json => {
  const prompt = inner(json, 'promptTokenCount')
  if (!isCount(prompt) && !isCount(inner(json, 'totalTokenCount'))) return undefined
  const cacheRead = count(inner(json, 'cachedContentTokenCount'))
  const input = count(prompt) + count(inner(json, 'toolUsePromptTokenCount')) - cacheRead
  const output = count(inner(json, 'candidatesTokenCount')) + count(inner(json, 'thoughtsTokenCount'))
  return usageOf(Math.max(0, input), output, { cacheRead })
}

const readConverse: ReadUsage = json => {
  const output = inner(json, 'outputTokens')
  if (!isCount(output)) return undefined
  return usageOf(inner(json, 'inputTokens'), output, {
    cacheRead: count(inner(json, 'cacheReadInputTokens')),
    cacheWrite: count(inner(json, 'cacheWriteInputTokens')),
  })
}

/** `usage` of a chat, `meta` of embeddings. */
const readCohere: ReadUsage = json => {
  const billed = inner(json, 'billed_units') ?? inner(json, 'tokens')
  const input = inner(billed, 'input_tokens')
  return isCount(input) ? usageOf(input, inner(billed, 'output_tokens')) : undefined
}

/** `amazon-bedrock-invocationMetrics`, in the last chunk of a stream. */
export const readInvocationMetrics: ReadUsage = json => {
  const output = inner(json, 'outputTokenCount')
  if (!isCount(output)) return undefined
  return usageOf(inner(json, 'inputTokenCount'), output, {
    cacheRead: count(inner(json, 'cacheReadInputTokenCount')),
    cacheWrite: count(inner(json, 'cacheWriteInputTokenCount')),
  })
}

/** Ollama has no object for it. A prompt that was seen before is not counted again, and may be left out. */
export const readOllama = (input: unknown, output: unknown): Usage | undefined =>
  isCount(output) || isCount(input) ? usageOf(input, output) : undefined

interface UsageMember {
  readonly name: Buffer
  /** Without its first quote, of which an event has many: it is found in a third of the time. */
  readonly nameEnd: Buffer
  readonly read: ReadUsage
}

function member(text: string, read: ReadUsage): UsageMember {
  const name = Buffer.from(`"${text}"`)
  return { name, nameEnd: name.subarray(1), read }
}

/** The members of an answer that tell, the likeliest first. */
export const usageMembers: { readonly [F in Exclude<Format, 'ollama'>]: readonly UsageMember[] } = {
  openai: [member('usage', readOpenAi)],
  anthropic: [member('usage', readAnthropic)],
  gemini: [member('usageMetadata', readGemini)],
  bedrock: [member('usage', readConverse)],
  'bedrock-invoke': [member('usage', readAnthropic)],
  cohere: [member('usage', readCohere), member('meta', readCohere)],
}

const countFields = ['input', 'output', 'cache-read-input', 'cache-write-input'] as const

/** Bedrock tells in the head of answers to InvokeModel. @param fieldOf the value of a header field */
export function usageOfHead(fieldOf: (name: string) => string | undefined): Usage | undefined {
  const [input, output, cacheRead, cacheWrite] = countFields.map(kind => {
    const text = fieldOf(`x-amzn-bedrock-${kind}-token-count`)
    return text === undefined || !/^\d{1,10}$/.test(text) ? undefined : Number(text)
  })
  if (!isCount(input) || !isCount(output)) return undefined
  return usageOf(input, output, { cacheRead: count(cacheRead), cacheWrite: count(cacheWrite) })
}
