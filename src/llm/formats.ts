/** How the answer of a provider is written: its path tells, since many providers speak the formats of others too. */
export type Format = 'openai' | 'anthropic' | 'gemini' | 'ollama' | 'bedrock' | 'bedrock-invoke' | 'cohere'

/** A longer name is the name of no model. Prices are searched with patterns, and agents write paths. */
export const maxModelLength = 200

export interface CalledModel {
  readonly format: Format
  /** Where the path has it. */
  readonly model: string | undefined
}

/** Paths whose answers tell tokens, by their ends. The first group is the model. */
const paths: readonly (readonly [Format, RegExp])[] = [
  ['openai', /\/(?:chat|fim)\/completions\/?$/],
  ['openai', /\/v\d\w*\/(?:completions|embeddings|responses)\/?$/],
  ['openai', /\/v\d\w*\/(?:images\/(?:generations|edits|variations)|audio\/(?:transcriptions|translations))\/?$/],
  ['anthropic', /\/v\d\w*\/messages\/?$/],
  ['gemini', /\/models\/([^/:]+):(?:generateContent|streamGenerateContent)\/?$/],
  ['anthropic', /\/publishers\/anthropic\/models\/([^/:]+):(?:rawPredict|streamRawPredict)\/?$/],
  ['ollama', /\/api\/(?:chat|generate|embed)\/?$/],
  ['bedrock', /\/model\/([^/]+)\/(?:converse|converse-stream)\/?$/],
  ['bedrock-invoke', /\/model\/([^/]+)\/(?:invoke|invoke-with-response-stream)\/?$/],
  ['cohere', /\/v2\/(?:chat|embed)\/?$/],
]

/** A deployment of Azure has a name that its owner chose. It is as good as the model where an answer names none. */
const azure = /\/openai\/deployments\/([^/]+)\//
const azurePath =
  /\/(?:completions|embeddings|images\/(?:generations|edits)|audio\/(?:transcriptions|translations))\/?$/

/** Undefined: answers at this path tell no tokens. */
export function calledModel(path: string): CalledModel | undefined {
  const deployment = azure.exec(path)
  if (deployment !== null) return azurePath.test(path) ? found('openai', deployment[1]) : undefined
  for (const [format, pattern] of paths) {
    const match = pattern.exec(path)
    if (match !== null) return found(format, match[1])
  }
  return undefined
}

function found(format: Format, model: string | undefined): CalledModel {
  return { format, model: model === undefined ? undefined : decoded(model) }
}

function decoded(text: string): string | undefined {
  try {
    const name = decodeURIComponent(text)
    return name.length <= maxModelLength ? name : undefined
  } catch {
    return undefined
  }
}
