import t from 'tap'
import { parseTarget } from '../../src/base/target.ts'
import { createProviders } from '../../src/llm/providers.ts'

const isProvider = createProviders(['vllm.internal:8000', '*.models.test', '127.0.0.1:11434'])

function originOf(url: string) {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new Error(target)
  return target.origin
}

const providers = [
  ...['https://api.openai.com/', 'https://eu.api.openai.com/', 'https://me.openai.azure.com/'],
  ...['https://api.anthropic.com/', 'https://generativelanguage.googleapis.com/', 'https://openrouter.ai/'],
  ...['https://aiplatform.googleapis.com/', 'https://europe-west4-aiplatform.googleapis.com/'],
  ...['https://aiplatform.eu.rep.googleapis.com/', 'https://bedrock-runtime.eu-central-1.amazonaws.com/'],
  ...['https://bedrock-runtime-fips.us-east-1.amazonaws.com/', 'https://api.cohere.com/', 'https://ollama.com/'],
  ...['https://bedrock-mantle.us-east-1.api.aws/', 'https://generativelanguage.mtls.googleapis.com/'],
  ...['https://aiplatform.mtls.googleapis.com/', 'https://europe-west4-aiplatform.mtls.googleapis.com/'],
  // T77: the same servers answer at other names, and at other ports.
  ...['https://bedrock-runtime.us-east-1.api.aws/', 'https://bedrock-runtime-fips.us-east-1.api.aws/'],
  ...['https://vpce-0a1b-x2.bedrock-runtime.eu-west-1.vpce.amazonaws.com/'],
  ...['https://bedrock-runtime.cn-north-1.amazonaws.com.cn/', 'https://bedrock-runtime.eusc-de-east-1.amazonaws.eu/'],
  ...['https://bedrock-runtime.cn-north-1.api.amazonwebservices.com.cn/'],
  ...['https://content-generativelanguage.googleapis.com/', 'https://firebasevertexai.googleapis.com/'],
  ...['https://api.openai.com:8443/', 'http://api.openai.com:443/', 'https://api.anthropic.com:2053/'],
  ...['http://vllm.internal:8000/', 'https://a.models.test/', 'http://127.0.0.1:11434/'],
]

const others = [
  ...['https://api.openai.com.evil.test/', 'https://notapi.openai.com/'],
  ...['https://openai.azure.com.evil.test/', 'https://storage.eu.rep.googleapis.com/', 'https://s3.amazonaws.com/'],
  ...['https://bedrock-runtime.us-east-1.api.aws.evil.test/', 'https://x.bedrock-runtime.us-east-1.amazonaws.com/'],
  ...['https://bedrock-runtime.s3.amazonaws.com/', 'https://vpce-evil.bedrock-runtime.s3.amazonaws.com/'],
  ...['https://bedrock-runtime.s3-website-us-east-1.amazonaws.com/', 'https://bedrock-mantle.models.api.aws/'],
  ...['https://bedrock-runtime.a.b.amazonaws.com/', 'https://x.evil.test/-aiplatform.googleapis.com'],
  ...['http://vllm.internal/', 'http://vllm.internal:8001/', 'https://a.models.test:8443/', 'https://models.test/'],
]

t.test('known hosts at any port, and those of the settings at theirs, are providers', async t => {
  t.strictSame(
    providers.filter(url => isProvider(originOf(url)) === undefined),
    [],
  )
})

t.test('names that look like those of providers are none', async t => {
  t.strictSame(
    others.filter(url => isProvider(originOf(url)) !== undefined),
    [],
  )
})

t.test('an origin that was asked for before has the same answer', async t => {
  t.ok(isProvider(originOf('https://api.openai.com/')))
  t.notOk(isProvider(originOf('https://models.test/')))
})
