/** What a part of an answer tells: of its tokens, and of its model. */
import { type Format, maxModelLength } from './formats.ts'
import { firstText, lastMember } from './json-members.ts'
import { readInvocationMetrics, readOllama, type Usage, usageMembers } from './usage.ts'

const evalCount = Buffer.from('"eval_count"')
const promptEvalCount = Buffer.from('"prompt_eval_count"')
const model = Buffer.from('"model"')
const modelVersion = Buffer.from('"modelVersion"')
const bytesName = Buffer.from('"bytes"')
const invocationMetrics = Buffer.from('"amazon-bedrock-invocationMetrics"')
const quote = 34
const brace = 123
const betweenNameAndValue = [58, 32, 9, 10, 13]

/** What is used by the answer that ends with this text: a document, the data of an event, or a line. */
export function readUsage(format: Format, text: Buffer, isEmbedded = false): Usage | undefined {
  if (format === 'ollama') return readOllama(numberNamed(text, promptEvalCount), numberNamed(text, evalCount))
  for (const { name, read } of usageMembers[format]) {
    const found = read(parsed(lastMember(text, { name, isObject: true, isEmbedded })))
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether any part of the text can tell what was used. */
export const mayHaveUsage = (format: Format, text: Buffer): boolean =>
  format === 'ollama' || usageMembers[format].some(({ name }) => text.includes(name))

/**
 * The same of one event, which may have the member without an object: `"usage":null`. A loop, since a closure for each event
 * would be a twentieth of what a stream allocates.
 */
export function hasUsageObject(format: Format, event: Buffer): boolean {
  if (format === 'ollama') return true
  for (const { nameEnd } of usageMembers[format]) if (hasObject(event, nameEnd)) return true
  return false
}

function hasObject(event: Buffer, nameEnd: Buffer): boolean {
  let at = event.indexOf(nameEnd)
  while (at >= 0) {
    at += nameEnd.length
    while (betweenNameAndValue.includes(event[at]!)) at++
    if (event[at] === brace) return true
    // Many events end with null for it: what is behind that is too short for another.
    at = event.length - at > nameEnd.length + 1 ? event.indexOf(nameEnd, at) : -1
  }
  return false
}

const numberNamed = (text: Buffer, name: Buffer): unknown => parsed(lastMember(text, { name, isObject: false }))

/** The last frames of a stream of Bedrock: `metadata` of Converse, or the metrics in the last chunk of the others. */
export function readFrames(format: Format, tail: Buffer): Usage | undefined {
  if (format === 'bedrock') return readUsage(format, tail, true)
  const at = tail.lastIndexOf(bytesName)
  if (at < 0) return undefined
  const from = tail.indexOf(quote, at + bytesName.length) + 1
  const end = tail.indexOf(quote, from)
  if (from <= 0 || end < 0) return undefined
  const chunk = Buffer.from(tail.toString('latin1', from, end), 'base64')
  return readInvocationMetrics(parsed(lastMember(chunk, { name: invocationMetrics, isObject: true })))
}

interface ThoughtSigns {
  readonly content: Buffer
  readonly thoughts: Buffer
}

/** Signs of content, and of thoughts, in streams whose models may think more than they show. */
const thoughtSigns: Partial<Readonly<Record<Format, ThoughtSigns>>> = {
  anthropic: { content: Buffer.from('content_block'), thoughts: Buffer.from('thinking"') },
  bedrock: { content: Buffer.from('contentBlock'), thoughts: Buffer.from('reasoningContent') },
}

/** Whether a part of an answer has content. What thinks begins with that. */
export const showsContent = (format: Format, text: Buffer): boolean =>
  text.includes(thoughtSigns[format]?.content ?? '')

/** Whether it has signs of thoughts. */
export function showsThoughts(format: Format, text: Buffer): boolean {
  // Its chunks are in base64.
  if (format === 'bedrock-invoke') return true
  const signs = thoughtSigns[format]
  return signs !== undefined && text.includes(signs.thoughts)
}

/** Formats whose answers begin with the name of the model. */
const namedAtStart: ReadonlySet<Format> = new Set(['openai', 'anthropic', 'ollama'])

/** The name of the model, from the beginning of an answer. @param depth the answer is so many objects deep */
export const modelAtStart = (format: Format, text: Buffer, depth: number): string | undefined =>
  namedAtStart.has(format) ? nameIn(firstText(text, model, depth)) : undefined

/** The same from its end: some have the name behind all else. */
export function modelAtEnd(format: Format, text: Buffer): string | undefined {
  return nameIn(lastMember(text, { name: format === 'gemini' ? modelVersion : model, isObject: false }))
}

function nameIn(text: string | undefined): string | undefined {
  const name = parsed(text)
  return typeof name === 'string' && name !== '' && name.length <= maxModelLength ? name : undefined
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
