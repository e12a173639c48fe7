/**
 * Attributes of calls of models and of tools. The names are those of OpenTelemetry that are still in development
 * (semantic conventions for generative AI and MCP): they stand here alone. What nothing read anyway is not read for them.
 */
import { maxModelLength } from '../../llm/formats.ts'
import type { ProviderId } from '../../llm/providers.ts'
import type { SpanAttributes } from '../../telemetry/tracing/span.ts'
import type { Exchange } from '../exchange.ts'

/** Of the message that a rule read, or of the call whose answer is metered. */
export function genAiAttributes({ names, meter, target }: Exchange): SpanAttributes {
  const { mcp, llm } = names ?? {}
  if (mcp !== undefined) {
    return {
      'mcp.method.name': mcp.method,
      'gen_ai.operation.name': mcp.tool === undefined ? undefined : 'execute_tool',
      'gen_ai.tool.name': isShort(mcp.tool) ? mcp.tool : undefined,
    }
  }
  const provider = meter?.provider ?? llm?.provider
  if (provider === undefined) return {}
  const model = llm?.model ?? meter?.called
  return {
    'gen_ai.operation.name': operationOf(target?.path ?? ''),
    'gen_ai.provider.name': provider in providers ? providers[provider] : provider,
    'gen_ai.request.model': isShort(model) ? model : undefined,
  }
}

/** Agents write these names, and spans wait in memory for the collector: one may be as long as the body that rules read. */
const isShort = (name: string | undefined): boolean => name !== undefined && name.length <= maxModelLength

/** What the answer told. */
export function usageAttributes({ meter }: Exchange): SpanAttributes {
  const usage = meter?.usage
  return {
    'gen_ai.response.model': usage?.model ?? undefined,
    'gen_ai.usage.input_tokens': usage?.tokens?.input,
    'gen_ai.usage.output_tokens': usage?.tokens?.output,
  }
}

/** Where the conventions have another name for a provider or the format of one. */
const providers: Readonly<Partial<Record<ProviderId | 'gemini', string | undefined>>> = {
  azure: 'azure.ai.openai',
  aws: 'aws.bedrock',
  google: 'gcp.gen_ai',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  'x-ai': 'x_ai',
  other: undefined,
}

/** Paths by their ends. */
const operations: readonly (readonly [string, RegExp])[] = [
  ['embeddings', /\/embed(?:ding)?s?\/?$|:(?:batchE|e)mbedContents?\/?$/i],
  ['generate_content', /:(?:streamG|g)enerateContent\/?$/i],
  ['chat', /\/(?:chat\/completions|chat|messages|responses|converse|converse-stream)\/?$/i],
  ['text_completion', /\/(?:completions|generate)\/?$/i],
]

const operationOf = (path: string): string | undefined => operations.find(([, pattern]) => pattern.test(path))?.[0]
