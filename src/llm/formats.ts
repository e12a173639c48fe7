import { Memo } from '../base/memo.ts'

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

/** Each call asks twice, and most go to a few paths. Longer ones are not kept. */
const known = new Memo<string, CalledModel | undefined>(256)
const maxKnownPath = 256

/** Undefined: answers at this path tell no tokens. */
export function calledModel(path: string): CalledModel | undefined {
  if (path.length > maxKnownPath) return modelAt(path)
  if (!known.has(path)) known.set(path, modelAt(path))
  return known.get(path)
}

function modelAt(path: string): CalledModel | undefined {
  const deployment = azure.exec(path)
  if (deployment !== null) return azurePath.test(path) ? found('openai', path, deployment[1]) : undefined
  for (const [format, pattern] of paths) {
    const match = pattern.exec(path)
    if (match !== null) return found(format, path, match[1])
  }
  return undefined
}

/** Calls that cost nothing: what they do is counted by no provider. */
const freePath =
  /\/(?:moderations|files|uploads|uploads\/[^/]+\/(?:parts|complete)|conversations|cancel|count_tokens|input_tokens|tokenize|detokenize)\/?$|:countTokens\/?$|\/model\/[^/]+\/count-tokens\/?$|\/api\/(?:show|ps|tags|version)\/?$/

/** Some servers cut paths at these, encoded or not, and would serve what stands before them. An encoded colon is usual. */
const oddBytes = /;|%(?!3a)/i

/** Whether a call that sends something to this path of a provider costs nothing. */
export const isFree = (path: string): boolean => freePath.test(path) && !oddBytes.test(path)

const embeddings = /\/embed(?:dings)?\/?$/

/** Whether the models at this path write nothing: also the name of a deployment could be cut, which would leave another call. */
export const writesNothing = (path: string): boolean => embeddings.test(path) && !oddBytes.test(path)

/** Undefined: a server that cuts the path may carry out another call, which tells its tokens in another way. */
function found(format: Format, path: string, model: string | undefined): CalledModel | undefined {
  // A slash in its place: what stands around it must not join to an escape that is allowed.
  if (oddBytes.test(model === undefined ? path : path.replace(model, '/'))) return undefined
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
