import t from 'tap'
import { calledModel, isFree } from '../../src/llm/formats.ts'
import { maxUsage, readModelRequest } from '../../src/llm/model-request.ts'

function read(path: string, body: unknown) {
  const called = calledModel(path)
  if (called === undefined) throw new Error(path)
  return readModelRequest(called, Buffer.from(JSON.stringify(body)))
}

const cases: readonly (readonly [string, string, unknown, number | undefined, number])[] = [
  ['OpenAI', '/v1/chat/completions', { model: 'm', max_tokens: 5, max_completion_tokens: 9, n: 3 }, 9, 3],
  ['OpenAI, several drafts', '/v1/completions', { model: 'm', max_tokens: 5, n: 2, best_of: 4 }, 5, 4],
  ['OpenAI Responses', '/v1/responses', { model: 'm', max_output_tokens: 7 }, 7, 1],
  ['Anthropic', '/v1/messages', { model: 'm', max_tokens: 11 }, 11, 1],
  ['Gemini', '/v1beta/models/m:generateContent', { generationConfig: { maxOutputTokens: 5, candidateCount: 2 } }, 5, 2],
  ['Gemini, other names', '/v1/models/m:generateContent', { generation_config: { max_output_tokens: 6 } }, 6, 1],
  ['Ollama', '/api/chat', { model: 'm', options: { num_predict: 8 } }, 8, 1],
  ['Ollama, without a bound', '/api/chat', { model: 'm', options: { num_predict: -1 } }, undefined, 1],
  ['Bedrock', '/model/m/converse', { inferenceConfig: { maxTokens: 4 } }, 4, 1],
  ['Bedrock InvokeModel', '/model/m/invoke', { textGenerationConfig: { maxTokenCount: 3 } }, 3, 1],
  ['Cohere', '/v2/chat', { model: 'm', max_tokens: 2 }, 2, 1],
  ['no number', '/v1/chat/completions', { model: 'm', max_tokens: null }, undefined, 1],
]

for (const [what, path, body, maxOutput, copies] of cases) {
  t.test(`${what}: the model, the tokens and the copies are read`, async t => {
    t.match(read(path, body), { models: ['m'], maxOutput, copies })
  })
}

t.test('streams and background calls are known', async t => {
  const stream = { model: 'm', stream: true }
  t.match(read('/v1/chat/completions', stream), { streams: true, asksUsage: false, isBackground: false })
  const asking = { ...stream, stream_options: { include_usage: true } }
  t.match(read('/v1/chat/completions', asking), { streams: true, asksUsage: true })
  t.match(read('/v1/responses', { model: 'm', background: true }), { isBackground: true })
  t.match(read('/v1/messages', { model: 'm', background: true }), { isBackground: false })
})

t.test('numbers and models of another type are not read', async t => {
  for (const body of [{ max_tokens: '9' }, { n: [1] }, { model: 7 }, { model: '' }, { model: 'x'.repeat(201) }]) {
    t.equal(read('/v1/chat/completions', { model: 'm', ...body }), undefined, JSON.stringify(body).slice(0, 30))
  }
})

t.test('T77 a number that stands twice in its object is not read: servers differ in which of them counts', async t => {
  const bodies: readonly (readonly [string, string])[] = [
    ['/v1beta/models/m:generateContent', '{"generationConfig":{"maxOutputTokens":9000,"maxOutputTokens":1}}'],
    ['/v1beta/models/m:generateContent', '{"generationConfig":{"candidateCount":8,"candidatecount":1}}'],
    ['/api/chat', '{"options":{"num_predict":1,"num_predict":9000}}'],
    ['/model/m/converse', '{"inferenceConfig":{"maxTokens":1,"maxTokens":9000}}'],
    ['/v1/chat/completions', '{"stream_options":{"include_usage":true,"include_usage":false}}'],
  ]
  for (const [path, text] of bodies) t.equal(readModelRequest(calledModel(path)!, Buffer.from(text)), undefined, text)
  const both = { generationConfig: { maxOutputTokens: 5, max_output_tokens: 6 } }
  t.equal(read('/v1/models/m:generateContent', both)?.maxOutput, 6, 'of two names the higher counts')
})

t.test('T77 metadata and a user that would hide the usage of an answer are not read', async t => {
  const long = { note: '😀'.repeat(510) }
  t.type(read('/v1/responses', { model: 'm', metadata: { note: 'short' } }), 'object')
  t.equal(read('/v1/responses', { model: 'm', metadata: long }), undefined)
  t.equal(read('/v1/responses', { model: 'm', user: 'u'.repeat(2_048) }), undefined)
  const half = '😀'.repeat(260)
  t.equal(read('/v1/responses', { model: 'm', metadata: { note: half }, user: half }), undefined, 'both together')
  t.type(read('/v1/responses', { model: 'm', metadata: { note: half }, user: 'joe' }), 'object')
  t.equal(read('/v1/responses', { model: 'm', metadata: { usage: { input_tokens: 1, output_tokens: 1 } } }), undefined)
  t.type(read('/v1/responses', { model: 'm', metadata: { usage: '"usage":{}' } }), 'object', 'a text is no usage')
  t.type(read('/v1/messages', { model: 'm', metadata: long, user: 'u'.repeat(9_000) }), 'object', 'only there')
})

t.test('a call can use a token for three bytes, and what it may write', async t => {
  const request = read('/v1/chat/completions', { model: 'm', max_tokens: 100, n: 2 })!
  const usual = { writes: true, isStrict: false }
  t.match(maxUsage(request, 301, usual), { input: 101, output: 200 })
  t.match(maxUsage({ ...request, maxOutput: undefined }, 0, usual), { output: 32_768 })
  t.match(maxUsage({ ...request, maxOutput: 1e300 }, 0, usual), { output: 2 * 262_144 }, 'no model writes more')
  t.match(maxUsage(request, 30, { ...usual, writes: false }), { input: 10, output: 0 })
  t.match(read('/v1/chat/completions', { n: 1e9 }), { copies: 128 })
})

t.test('T77 where nothing may be exceeded a byte is a token, and an answer without a bound the longest', async t => {
  const request = read('/v1/chat/completions', { model: 'm' })!
  t.match(maxUsage(request, 300, { writes: true, isStrict: true }), { input: 2_348, output: 262_144 })
  t.match(maxUsage({ ...request, maxOutput: 5 }, 0, { writes: true, isStrict: true }), { output: 5 })
})

t.test('T77 a number below 1 is no bound: some servers then write as much as they can', async t => {
  const cases: readonly (readonly [string, object])[] = [
    ['/v1/chat/completions', { max_tokens: -5 }],
    ['/v1/chat/completions', { max_tokens: 5, max_completion_tokens: 0 }],
    ['/api/chat', { options: { num_predict: -2 } }],
    // Ollama cuts fractions off.
    ['/api/chat', { options: { num_predict: 0.5 } }],
    ['/v1/messages', { max_tokens: 0 }],
  ]
  for (const [path, body] of cases) t.strictSame(read(path, body)?.maxOutput, undefined, JSON.stringify(body))
  t.match(read('/v1/chat/completions', { n: -1, best_of: 5 }), { copies: 5 })
})

t.test('T77 each prompt of a list is answered', async t => {
  const copiesOf = (prompt: unknown) => read('/v1/completions', { model: 'm', n: 2, prompt })?.copies
  const prompts = [
    'a',
    [1, 2, 3],
    [-1, 2],
    [],
    ['a,b', 'b', '],'],
    [[1], [2, 3], [{ a: [4, 5] }]],
    { id: 'stored' },
    null,
  ]
  t.strictSame(prompts.map(copiesOf), [2, 2, 2, 2, 6, 6, 2, 2])
  t.equal(copiesOf(Array(20_000).fill('a')), 40_000, 'however long it is')
  const spaced = Buffer.from('{"prompt": [ [1, 2] , {"a": [","]} , "b" , true ] }')
  t.equal(readModelRequest(calledModel('/v1/completions')!, spaced)?.copies, 4)
})

t.test('T77 models that a provider may take in place of the first one are read', async t => {
  const modelsOf = (body: object, path = '/v1/chat/completions') => read(path, body)?.models
  t.strictSame(modelsOf({ model: 'm', models: ['a', 'b'] }), ['m', 'a', 'b'])
  t.strictSame(modelsOf({ models: ['a', 'b'] }), ['a', 'b'])
  t.strictSame(modelsOf({ model: 'm', fallbacks: ['a', { model: 'b' }] }), ['m', 'a', 'b'])
  t.strictSame(modelsOf({ model: 'm', fallbacks: [{ model: 'b' }] }, '/v1/messages'), ['m', 'b'])
  t.strictSame(modelsOf({ model: 'm', fallbacks: 'default' }, '/v1/messages'), ['m', 'default'])
  t.strictSame(modelsOf({ model: 'm', preset: 'mine' }), ['m', '@preset/mine'])
  t.strictSame(modelsOf({ model: 'm', models: null, fallbacks: [], preset: null }), ['m'])
  t.strictSame(modelsOf({}), [undefined])
  const odd: object[] = [{ models: [7] }, { models: {} }, { models: [''] }, { fallbacks: [{}] }, { preset: 7 }]
  odd.push({ context_window_fallbacks: [{ m: ['a'] }] }, { content_policy_fallbacks: [{ m: ['a'] }] })
  odd.push({ fallbacks: [{ model: 'a', Model: 'b' }] })
  odd.push({ fallbacks: [['a']] }, { models: Array(17).fill('a') }, { fallbacks: [{ model: 'a', max_tokens: '9' }] })
  for (const body of odd) t.equal(modelsOf({ model: 'm', ...body }), undefined, JSON.stringify(body))
})

t.test('T77 a fallback with a number of tokens of its own counts with it', async t => {
  const outputOf = (body: object) => read('/v1/messages', { model: 'm', ...body })?.maxOutput
  const fallbacks = [{ model: 'a', max_tokens: 9 }, { model: 'b' }]
  t.equal(outputOf({ max_tokens: 5, fallbacks }), 9)
  t.equal(outputOf({ max_tokens: 50, fallbacks }), 50)
  t.equal(outputOf({ fallbacks }), undefined)
  t.equal(outputOf({ max_tokens: 5, fallbacks: [{ model: 'a', max_tokens: 0 }] }), undefined, 'without a limit')
  const copies = { model: 'm', n: 2, fallbacks: [{ model: 'a', n: 7 }, 'b'] }
  t.equal(read('/v1/chat/completions', copies)?.copies, 7)
})

t.test('calls that no provider charges are known by their path', async t => {
  for (const path of ['/v1/moderations', '/v1/messages/count_tokens', '/v1beta/models/m:countTokens', '/v1/files/']) {
    t.ok(isFree(path), path)
  }
  t.ok(isFree('/model/a%3A0/count-tokens'))
  for (const path of ['/v1/batches', '/v1/chat/completions', '/v1/files/x/content', '/v1/messages/batches']) {
    t.notOk(isFree(path), path)
  }
  // T77: a server that cuts the path there completes a chat.
  for (const cut of [';', '%3b', '%3F', '%23', '%00', '%2F..']) t.notOk(isFree(`/v1/chat/completions${cut}/files`), cut)
})
