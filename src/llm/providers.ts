/** Hosts of model providers: only there an answer says what a call used. An agent could say anything from a host of its own. */
import { matchesAnyHost, parseHostPatterns } from '../base/host.ts'
import { hasUsualPort, isAtHost, parseHostAndPort } from '../base/host-port.ts'
import { Memo } from '../base/memo.ts'
import type { Origin } from '../base/origin.ts'

const knownHosts = [
  ...['.api.openai.com', '*.openai.azure.com', '*.services.ai.azure.com', '*.cognitiveservices.azure.com'],
  ...['api.anthropic.com', 'generativelanguage.googleapis.com', 'aiplatform.googleapis.com'],
  ...['api.cohere.com', 'api.cohere.ai', 'ollama.com', 'openrouter.ai'],
  ...['api.mistral.ai', 'codestral.mistral.ai', 'api.groq.com', 'api.together.xyz', 'api.together.ai'],
  ...['api.fireworks.ai', 'api.deepseek.com', '.api.x.ai', 'api.perplexity.ai', 'api.cerebras.ai'],
  ...['api.sambanova.ai', 'integrate.api.nvidia.com', 'router.huggingface.co', 'api.moonshot.ai', 'api.z.ai'],
  ...['dashscope.aliyuncs.com', 'dashscope-intl.aliyuncs.com', 'api.voyageai.com', 'api.jina.ai'],
]

/** Hosts with a region in them: of Vertex AI, and of Bedrock. */
const regionalHosts = [
  /^[a-z0-9-]+-aiplatform\.googleapis\.com$/,
  /^aiplatform\.[a-z0-9-]+\.rep\.googleapis\.com$/,
  /^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com$/,
]

/**
 * Whether an origin is a model provider.
 *
 * @param own further hosts: `vllm.internal:8000`, `*.models.example.com`
 */
export function createProviders(own: readonly string[]): (origin: Origin) => boolean {
  const known = parseHostPatterns(knownHosts)
  const added = own.map(parseHostAndPort)
  const found = new Memo<string, boolean>(4_096)
  const isProvider = (origin: Origin): boolean => {
    if (added.some(place => isAtHost(place, origin))) return true
    if (!hasUsualPort(origin)) return false
    return matchesAnyHost(known, origin.host) || regionalHosts.some(pattern => pattern.test(origin.host))
  }
  return origin => {
    const before = found.get(origin.key)
    if (before !== undefined) return before
    const now = isProvider(origin)
    found.set(origin.key, now)
    return now
  }
}
