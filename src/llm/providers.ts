/** Hosts of model providers: only there an answer says what a call used. An agent could say anything from a host of its own. */
import { type HostPattern, matchesAnyHost, parseHostPatterns } from '../base/host.ts'
import { isAtHost, parseHostAndPort } from '../base/host-port.ts'
import { Memo } from '../base/memo.ts'
import type { Origin } from '../base/origin.ts'
import { keysOf } from '../base/records.ts'

/** By the names that prices.json has. */
const hosts = {
  openai: ['.api.openai.com'],
  azure: ['*.openai.azure.com', '*.services.ai.azure.com', '*.cognitiveservices.azure.com'],
  anthropic: ['api.anthropic.com'],
  google: [
    ...['generativelanguage.googleapis.com', 'generativelanguage.mtls.googleapis.com'],
    ...['content-generativelanguage.googleapis.com', 'firebasevertexai.googleapis.com'],
    ...['aiplatform.googleapis.com', 'aiplatform.mtls.googleapis.com'],
  ],
  aws: [],
  cohere: ['api.cohere.com', 'api.cohere.ai'],
  ollama: ['ollama.com'],
  openrouter: ['openrouter.ai'],
  mistral: ['api.mistral.ai', 'codestral.mistral.ai'],
  groq: ['api.groq.com'],
  together: ['api.together.xyz', 'api.together.ai'],
  fireworks: ['api.fireworks.ai'],
  deepseek: ['api.deepseek.com'],
  'x-ai': ['.api.x.ai'],
  perplexity: ['api.perplexity.ai'],
  cerebras: ['api.cerebras.ai'],
  moonshotai: ['api.moonshot.ai'],
  zai: ['api.z.ai'],
  voyageai: ['api.voyageai.com'],
  other: [
    ...['api.sambanova.ai', 'integrate.api.nvidia.com', 'router.huggingface.co', 'api.jina.ai'],
    ...['dashscope.aliyuncs.com', 'dashscope-intl.aliyuncs.com'],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** `other` for known providers without prices, and for hosts of the settings. */
export type ProviderId = keyof typeof hosts

export const providerIds: readonly ProviderId[] = keysOf(hosts)

/** Hosts with a region in them: of Vertex AI, and of Bedrock. */
const regionalHosts: readonly (readonly [ProviderId, RegExp])[] = [
  ['google', /^[a-z0-9-]+-aiplatform(?:\.mtls)?\.googleapis\.com$/],
  ['google', /^aiplatform\.[a-z0-9-]+\.rep\.googleapis\.com$/],
  // Only regions: `bedrock-runtime.s3.amazonaws.com` is a bucket that anyone may have.
  [
    'aws',
    /^(?:vpce-[a-z0-9-]+\.)?bedrock-runtime(?:-fips)?\.[a-z]+(?:-[a-z]+)+-\d+\.(?:vpce\.)?amazonaws\.(?:com|com\.cn|eu)$/,
  ],
  ['aws', /^bedrock-runtime(?:-fips)?\.[a-z]+(?:-[a-z]+)+-\d+\.api\.(?:aws|amazonwebservices\.com\.cn)$/],
  ['aws', /^bedrock-mantle\.[a-z]+(?:-[a-z]+)+-\d+\.api\.aws$/],
]

/** The model provider at an origin; undefined when there is none. */
export type ProviderAt = (origin: Origin) => ProviderId | undefined

/**
 * Finds model providers.
 *
 * @param own further hosts: `vllm.internal:8000`, `*.models.example.com`
 */
export function createProviders(own: readonly string[]): ProviderAt {
  const known = providerIds.map(id => [id, parseHostPatterns(hosts[id])] as const)
  const added = own.map(parseHostAndPort)
  const found = new Memo<string, ProviderId | undefined>(4_096)
  const providerAt = (origin: Origin): ProviderId | undefined => {
    // At any port: some serve the same at 8443, and an agent must not get past its budgets there.
    return knownAt(origin.host, known) ?? (added.some(place => isAtHost(place, origin)) ? 'other' : undefined)
  }
  return origin => {
    if (found.has(origin.key)) return found.get(origin.key)
    const id = providerAt(origin)
    found.set(origin.key, id)
    return id
  }
}

function knownAt(
  host: string,
  known: readonly (readonly [ProviderId, readonly HostPattern[]])[],
): ProviderId | undefined {
  const [id] = known.find(([, patterns]) => matchesAnyHost(patterns, host)) ?? []
  return id ?? regionalHosts.find(([, pattern]) => pattern.test(host))?.[0]
}
