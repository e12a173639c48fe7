import t from 'tap'
import { calledModel, type Format, writesNothing } from '../../src/llm/formats.ts'

const told: readonly (readonly [path: string, format: Format, model?: string])[] = [
  ['/v1/chat/completions', 'openai'],
  ['/chat/completions', 'openai'],
  ['/openai/v1/responses', 'openai'],
  ['/api/v1/completions/', 'openai'],
  ['/v1/embeddings', 'openai'],
  ['/v1/images/generations', 'openai'],
  ['/v1/audio/transcriptions', 'openai'],
  ['/v1/fim/completions', 'openai'],
  ['/openai/deployments/my%20gpt/chat/completions', 'openai', 'my gpt'],
  ['/v1beta/openai/chat/completions', 'openai'],
  ['/v1/messages', 'anthropic'],
  ['/anthropic/v1/messages', 'anthropic'],
  ['/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict', 'anthropic', 'claude-x@1'],
  ['/v1beta/models/gemini-3-pro:generateContent', 'gemini', 'gemini-3-pro'],
  ['/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent', 'gemini', 'g'],
  ['/api/chat', 'ollama'],
  ['/api/generate', 'ollama'],
  ['/model/a%3A0/converse', 'bedrock', 'a:0'],
  ['/model/a/converse-stream', 'bedrock', 'a'],
  ['/model/a/invoke', 'bedrock-invoke', 'a'],
  ['/v2/chat', 'cohere'],
]

for (const [path, format, model] of told) {
  t.test(`${path} has the format ${format}`, async t => {
    t.strictSame(calledModel(path), { format, model })
  })
}

t.test('paths whose answers show no tokens have no format', async t => {
  const paths = [
    ...['/', '/v1/messages/count_tokens', '/v1/messages/batches', '/v1/files', '/v1/models', '/v1/moderations'],
    ...['/v1beta/models/g:countTokens', '/v1/chat/completions/chatcmpl-1', '/openai/deployments/gpt/files'],
    ...['/v1/responses/resp_1/cancel', '/v1/audio/speech', '/api/tags'],
  ]
  t.strictSame(
    paths.filter(path => calledModel(path) !== undefined),
    [],
  )
})

t.test('T77 a path that a server may cut has no format: it could be that of a cheaper call', async t => {
  for (const cut of [';', '%3b', '%3B', '%3f', '%23', '%2f', '%20']) {
    const paths = [`/v1/chat/completions${cut}/v1/embeddings`, `/model/a/invoke${cut}/model/b/converse`]
    for (const path of paths) t.equal(calledModel(path), undefined, path)
    t.notOk(writesNothing(`/openai/deployments/gpt%2Fchat%2Fcompletions${cut}/embeddings`), cut)
  }
  for (const [odd, model] of [
    ['%3ba', 'b'],
    ['%33a', '3'],
  ]) {
    const path = `/v1/chat/completions${odd}/openai/deployments/${model}/embeddings`
    t.equal(calledModel(path), undefined, `${path}: without the model it would have %3a`)
  }
  t.ok(writesNothing('/openai/deployments/ada%3A2/embeddings'))
  t.match(calledModel('/model/arn%3Aaws%3Abedrock:1:application-inference-profile%2Fa/converse'), { format: 'bedrock' })
  t.match(calledModel('/v1/projects/example.com%3Ap/models/g:generateContent'), { format: 'gemini', model: 'g' })
})

t.test('a model that cannot be decoded is unknown', async t => {
  t.strictSame(calledModel('/model/%ff/converse'), { format: 'bedrock', model: undefined })
})

t.test('a name in a path that is too long for a model is none', async t => {
  const path = (name: string): string => `/v1beta/models/${name}:generateContent`
  t.equal(calledModel(path('g'.repeat(200)))?.model, 'g'.repeat(200))
  t.strictSame(calledModel(path('g'.repeat(201))), { format: 'gemini', model: undefined })
})
